"""Taking only for a waiting workload that really fits: who, for whom, and what blocks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from enforcer.decisions import Plan
from enforcer.facts import NodeRoom, QuotaUse, Workload
from enforcer.planning import plan_from
from enforcer.policies.model import Caps
from tests.support.enforcer_plan import (
    HOUR,
    MINUTE,
    NOON,
    WIDE,
    budget,
    caps,
    due,
    evidence,
    holder,
    node,
    past,
    pods,
    policy,
    quota,
    rule,
    snapshot,
    waiter,
)

ON_PRESSURE = rule(on_pressure=True)


def planned(
    *workloads: Workload,
    rooms: Sequence[NodeRoom] = (node("n1"), node("n2")),
    limits: Caps = WIDE,
    **facts: object,
) -> Plan:
    found = snapshot(*workloads, rooms=tuple(rooms), **facts)
    decisions = [due(one) for one in workloads if not one.is_pending and one.uid[0] != "-"]
    return plan_from(decisions, found, (policy(ON_PRESSURE, limits=limits),), NOON)


def taken(plan: Plan) -> list[str]:
    return [one.workload_uid for one in plan.actions]


def served(plan: Plan) -> set[str | None]:
    return {one.serves_workload_uid for one in plan.actions}


def why(plan: Plan) -> set[str]:
    return {str(reason) for one in plan.deferred for reason in one.reasons}


def test_nothing_waits() -> None:
    plan = planned(holder("a"))
    assert (taken(plan), why(plan)) == ([], {"no_pressure"})


def test_what_waits_fits_into_free_room() -> None:
    plan = planned(holder("a"), waiter("w"), rooms=[node("n1", free=1)])
    assert (taken(plan), why(plan)) == ([], {"no_pressure"})


def test_room_is_made_for_what_waits() -> None:
    plan = planned(holder("a"), waiter("w"))
    assert (taken(plan), served(plan)) == (["a"], {"w"})


def test_free_room_given_to_one_is_not_given_to_the_next() -> None:
    first, second = waiter("v", created_at=NOON - 2 * HOUR), waiter("w")
    plan = planned(holder("a"), first, second, rooms=[node("n1", free=1)])
    assert (taken(plan), served(plan)) == (["a"], {"w"})


def test_one_waiting_workload_is_served_in_a_round_the_most_important_first() -> None:
    low, high = waiter("v", created_at=NOON - 9 * HOUR), waiter("w", priority=9)
    plan = planned(holder("a"), holder("b"), low, high)
    assert (taken(plan), served(plan), why(plan)) == (["a"], {"w"}, {"not_needed"})


class TestReallyFits:
    @pytest.mark.parametrize(
        ("needs", "rooms", "is_taken"),
        [
            pytest.param({}, [node("n1")], True, id="same model"),
            pytest.param({"gpu_models": ()}, [node("n1")], True, id="any model"),
            pytest.param({"gpu_models": ("A100",)}, [node("n1")], False, id="another model"),
            pytest.param(
                {"gpu_models": ("NVIDIA-H100",)},
                [node("n1", gpu_model="NVIDIA H100")],
                True,
                id="the label writes no spaces",
            ),
            pytest.param({"mig_profile": "1g.10gb"}, [node("n1")], False, id="wants an instance"),
            pytest.param({}, [node("n1", is_schedulable=False)], False, id="cordoned"),
            pytest.param({}, [node("n1", gpu_model=None)], False, id="model not known"),
            pytest.param({}, [], False, id="node not known"),
        ],
    )
    def test_model_and_kind(
        self, needs: dict[str, object], rooms: list[NodeRoom], *, is_taken: bool
    ) -> None:
        plan = planned(
            holder("a"), waiter("w", **needs), rooms=[*rooms, node("far", gpu_model="none")]
        )
        assert taken(plan) == (["a"] if is_taken else [])

    def test_instances_are_freed_for_those_of_the_same_profile(self) -> None:
        rooms = [node("n1", total=7, mig_profile=name) for name in ("1g.10gb", "3g.40gb")]
        small = holder("a", mig_profile="1g.10gb", gpu_count=1 / 7)
        large = holder("b", mig_profile="3g.40gb", gpu_count=3 / 7)
        plan = planned(small, large, waiter("w", mig_profile="3g.40gb"), rooms=rooms)
        assert taken(plan) == ["b"]

    @pytest.mark.parametrize(
        ("per_pod", "is_taken"),
        [
            pytest.param(4, True, id="in pods of four"),
            pytest.param(8, False, id="eight on one node"),
        ],
    )
    def test_count_per_node(self, per_pod: int, *, is_taken: bool) -> None:
        halves = [holder("a", {"n1": 4}), holder("b", {"n2": 4})]
        plan = planned(*halves, waiter("w", 8.0, pod_gpu_count=per_pod))
        assert taken(plan) == (["a", "b"] if is_taken else [])

    def test_pods_not_told_are_one_pod_if_a_node_could_hold_it(self) -> None:
        halves = [holder("a", {"n1": 4}), holder("b", {"n2": 4})]
        assert taken(planned(*halves, waiter("w", 8.0))) == []
        assert why(planned(*halves, waiter("w", 16.0))) == {"blocked_by_shape"}

    def test_pods_of_different_size_count_as_the_largest(self) -> None:
        asked = (*pods("w", {"x": 1}), *pods("v", {"y": 4}))
        halves = [holder("a", {"n1": 4}), holder("b", {"n2": 4})]
        assert taken(planned(*halves, waiter("w", 5.0, pods=asked))) == ["a", "b"]

    @pytest.mark.parametrize("count", [0.5, 1.5])
    def test_a_part_of_a_gpu_is_not_promised(self, count: float) -> None:
        assert why(planned(holder("a"), waiter("w", count))) == {"blocked_by_shape"}

    def test_a_part_of_a_gpu_frees_none(self) -> None:
        assert taken(planned(holder("a", gpu_count=0.5), waiter("w"))) == []

    @pytest.mark.parametrize(
        ("level", "is_taken"),
        [
            pytest.param(None, True, id="anywhere"),
            pytest.param("rack", True, id="one rack"),
            pytest.param("nvlink_domain", False, id="two domains"),
        ],
    )
    def test_topology(self, level: str | None, *, is_taken: bool) -> None:
        rooms = [node(name, rack="r", nvlink_domain=name) for name in ("n1", "n2")]
        both = [holder("a", {"n1": 8}), holder("b", {"n2": 8})]
        plan = planned(*both, waiter("w", 16.0, pod_gpu_count=8, stays_within=level), rooms=rooms)
        assert taken(plan) == (["a", "b"] if is_taken else [])
        assert why(plan) == (set() if is_taken else {"blocked_by_topology"})

    def test_a_node_that_does_not_tell_its_rack_is_in_none(self) -> None:
        asked = waiter("w", stays_within="rack")
        assert why(planned(holder("a"), asked)) == {"blocked_by_topology"}


class TestDiagnosis:
    @pytest.mark.parametrize(
        ("room", "asked", "reason"),
        [
            pytest.param(
                {"free_cpu_milli": 0}, {"cpu_milli": 1}, "blocked_by_cpu", id="processors"
            ),
            pytest.param(
                {"free_cpu_milli": None}, {"cpu_milli": 1}, "blocked_by_cpu", id="not known"
            ),
            pytest.param(
                {"free_memory_bytes": 0}, {"memory_bytes": 1}, "blocked_by_memory", id="memory"
            ),
            pytest.param({}, {"gpu_models": ("A100",)}, "blocked_by_model", id="model"),
            pytest.param({}, {"gpu_count": 9.0, "pod_gpu_count": 9}, "blocked_by_gpus", id="GPUs"),
        ],
    )
    def test_scenario_33_the_blocking_resource_is_named(
        self, room: dict[str, object], asked: dict[str, object], reason: str
    ) -> None:
        plan = planned(holder("a"), waiter("w", **asked), rooms=[node("n1", **room)])
        assert (taken(plan), why(plan)) == ([], {reason})

    @pytest.mark.parametrize(
        ("cpu", "is_taken"),
        [
            pytest.param(7_999, False, id="just too little"),
            pytest.param(8_000, True, id="exactly enough"),
            pytest.param(8_001, True, id="more"),
        ],
    )
    def test_processors_of_victims_are_freed_with_them(self, cpu: int, *, is_taken: bool) -> None:
        one = holder("a", cpu_milli=cpu - 1_000)
        plan = planned(one, waiter("w", cpu_milli=8_000), rooms=[node("n1", free_cpu_milli=1_000)])
        assert taken(plan) == (["a"] if is_taken else [])

    def test_caps_that_let_too_few_go_let_none_go(self) -> None:
        both = [holder("a"), holder("b")]
        plan = planned(*both, waiter("w", 2.0), limits=caps(workloads_per_round=1))
        assert (taken(plan), why(plan)) == ([], {"caps_below_need"})


class TestQuota:
    @pytest.mark.parametrize(
        ("use", "is_taken"),
        [
            pytest.param({"limit_gpu_count": 4.0, "used_gpu_count": 3.0}, True, id="just within"),
            pytest.param({"limit_gpu_count": 4.0, "used_gpu_count": 3.5}, False, id="beyond"),
            pytest.param({"limit_gpu_count": 4.0}, False, id="use not known"),
            pytest.param({"used_gpu_count": 400.0}, True, id="no limit"),
            pytest.param(
                {"limit_gpu_count": 0.0, "used_gpu_count": 0.0, "gpu_model": "A100"},
                True,
                id="limit of another model",
            ),
        ],
    )
    def test_the_limit_of_what_waits(self, use: dict[str, object], *, is_taken: bool) -> None:
        limit = quota(queue="waiting", **use)
        plan = planned(holder("a"), waiter("w"), quotas=(limit,))
        assert taken(plan) == (["a"] if is_taken else [])
        assert why(plan) == (set() if is_taken else {"blocked_by_quota"})

    def test_a_victim_of_the_same_queue_gives_its_quota_back(self) -> None:
        full = quota(queue="waiting", limit_gpu_count=1.0, used_gpu_count=1.0)
        other, own = holder("a"), holder("b", queue="waiting")
        assert taken(planned(other, own, waiter("w"), quotas=(full,))) == ["b"]

    @pytest.mark.parametrize(
        ("guaranteed", "first"),
        [
            pytest.param(0.0, "b", id="beyond its guarantee"),
            pytest.param(1.0, "a", id="exactly at it"),
            pytest.param(None, "a", id="not known"),
        ],
    )
    def test_what_lies_beyond_a_guarantee_goes_first(
        self, guaranteed: float | None, first: str
    ) -> None:
        use: QuotaUse = quota(queue="b", guaranteed_gpu_count=guaranteed, used_gpu_count=1.0)
        plan = planned(holder("a"), holder("b", queue="b"), waiter("w"), quotas=(use,))
        assert taken(plan) == [first]

    def test_scenario_35_parts_of_gpus_add_up_to_more_than_a_guarantee(self) -> None:
        from enforcer.planning.victims import by_queue, over_quota_gpus

        use = quota(guaranteed_gpu_count=1.0, used_gpu_count=1.2)
        parts = [holder(uid, gpu_count=0.6) for uid in "ab"]
        assert over_quota_gpus(parts, by_queue([use])) == pytest.approx(0.2)


class TestMinimal:
    def test_scenario_31_the_lowest_priority_and_the_smallest_set(self) -> None:
        low = [holder("a", priority=1), holder("b", priority=1), holder("d", {"n2": 4}, priority=1)]
        high = holder("c", {"n1": 2}, priority=2)
        plan = planned(*low, high, waiter("w", 2.0))
        assert taken(plan) == ["d"]  # one low one, not two, and never the high one
        plan = planned(*low[:2], high, waiter("w", 2.0))
        assert taken(plan) == ["a", "b"]
        assert why(plan) == {"not_needed"}

    @pytest.mark.parametrize(
        ("changes", "first"),
        [
            pytest.param({"gpu_count": 1.0}, "a", id="alike: by uid"),
            pytest.param({"evidence": evidence(idle=4 * HOUR)}, "b", id="longer idle"),
            pytest.param(
                {"evidence": evidence(idle=3 * HOUR + MINUTE)}, "b", id="same hour: less work lost"
            ),
            pytest.param({"checkpoint_at": NOON - 4 * HOUR}, "b", id="less lost"),
            pytest.param({"admitted_at": None}, "a", id="what is lost is not known"),
            pytest.param({"priority": None}, "a", id="priority not told: as 0"),
            pytest.param({"priority": -1}, "b", id="lower priority"),
        ],
    )
    def test_which_of_two(self, changes: dict[str, object], first: str) -> None:
        plan = planned(holder("a"), holder("b", **changes), waiter("w"))
        assert taken(plan) == [first]

    def test_scenario_40_the_newest_checkpoint_goes_first(self) -> None:
        times = {"a": 9 * HOUR, "b": 4 * HOUR, "c": 6 * HOUR}
        found = [holder(uid, checkpoint_at=NOON - ago) for uid, ago in times.items()]
        plan = planned(*found, waiter("w"))
        assert [(one.workload_uid, one.lost_gpu_hours) for one in plan.actions] == [("b", 1.0)]

    def test_fewer_gpus_go_first_even_if_they_empty_no_node(self) -> None:
        whole, part = holder("a", {"n1": 8}), holder("b", {"n2": 4})
        assert taken(planned(whole, part, waiter("w", 4.0))) == ["b"]

    def test_of_two_alike_the_one_that_empties_a_node(self) -> None:
        rooms = [node("n1"), node("n2", free=4)]
        both = [holder("a", {"n1": 4}), holder("b", {"n2": 4})]
        assert taken(planned(*both, waiter("w", 8.0), rooms=rooms)) == ["b"]
        both = [holder("a", {"n1": 4}), holder("b", {"n3": 4})]
        rooms = [node("n1"), node("n3", total=4)]
        assert taken(planned(*both, waiter("w", 4.0), rooms=rooms)) == ["b"]


class TestGangs:
    gang = holder("g", {"n1": 4, "n2": 4}, is_gang=True)

    def test_scenario_39_a_gang_goes_whole(self) -> None:
        (action,) = planned(self.gang, waiter("w", 2.0)).actions
        assert (action.workload_uid, action.gpu_count) == ("g", 8.0)

    def test_scenario_39_or_not_at_all(self) -> None:
        small = caps(gpu_ratio_per_hour=7 / 16)
        plan = planned(self.gang, waiter("w", 2.0), limits=small)
        assert (taken(plan), why(plan)) == ([], {"caps_below_need"})
        kept = budget(1)
        assert taken(planned(self.gang, waiter("w", 2.0), disruptions=(kept,))) == []

    def test_scenario_39_a_waiting_gang_gets_all_its_room_or_none_is_made(self) -> None:
        rooms = [node(f"n{at}") for at in range(4)]
        three = [holder(f"h{at}", {f"n{at}": 8}) for at in range(3)]
        asked = waiter("w", 32.0, pod_gpu_count=8, is_gang=True)
        assert taken(planned(*three, asked, rooms=rooms)) == []
        four = [*three, holder("h3", {"n3": 8})]
        assert len(taken(planned(*four, asked, rooms=rooms))) == 4


class TestOnTheirWay:
    @pytest.mark.parametrize(
        ("outcome", "count"),
        [
            pytest.param("begun", 0, id="begun: its GPUs come"),
            pytest.param("done", 0, id="done, and not seen yet"),
            pytest.param("failed", 1, id="failed: nothing comes"),
            pytest.param("undone", 1, id="undone"),
        ],
    )
    def test_scenario_24_only_what_did_not_fail_counts_as_freed(
        self, outcome: str, count: int
    ) -> None:
        leaving = holder("-leaving")
        act = past("-leaving", outcome=outcome, begun_at=NOON - MINUTE)
        plan = planned(leaving, holder("a"), waiter("w"), past_actions=(act,))
        assert len(taken(plan)) == count

    def test_what_is_still_there_after_a_while_does_not(self) -> None:
        act = past("-leaving", begun_at=NOON - 15 * MINUTE)
        plan = planned(holder("-leaving"), holder("a"), waiter("w"), past_actions=(act,))
        assert taken(plan) == ["a"]


@pytest.mark.parametrize("count", [40, 400])
def test_among_many_the_best_is_found(count: int) -> None:
    rooms = [node(f"n{at}") for at in range(count)]
    found = [
        holder(f"h{at:03}", {f"n{at}": 4}, evidence=evidence(idle=timedelta(hours=2 + at % 7)))
        for at in range(count)
    ]
    twins = [holder(f"t{at:03}", {f"n{at}": 4}) for at in range(0, count, 2)]
    plan = planned(*found, *twins, waiter("w", 8.0), rooms=rooms)
    assert len(taken(plan)) == 2
    assert {one[-3:] for one in taken(plan)} == {taken(plan)[0][-3:]}
