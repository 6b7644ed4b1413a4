"""Laws of plans: minimal like brute force, blind to order, never beyond caps, mild under quota."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import combinations
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.decisions import TAKING_STEPS, Decision, Plan, Step, Verdict
from enforcer.facts import NodeRoom, QuotaUse, Snapshot, Workload
from enforcer.planning import plan_from
from enforcer.planning.budget import budget_at
from enforcer.planning.due import due_steps
from enforcer.policies.model import Policy
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
    policy,
    quota,
    rule,
    snapshot,
    waiter,
)

NODES = ("n1", "n2", "n3")
RACKS = {"n1": "r1", "n2": "r1", "n3": "r2"}
TEAMS = ("x", "y")
MOST = 12
EXAMPLES = 200

ROOMS = st.tuples(
    *(
        st.builds(
            lambda free, cpu, model, name=name: node(
                name, free=free, total=8, free_cpu_milli=cpu, gpu_model=model, rack=RACKS[name]
            ),
            st.integers(0, 2),
            st.sampled_from([0, 2, 9, None]),
            st.sampled_from(["H100", "H100", "A100"]),
        )
        for name in NODES
    )
)
SPREADS = tuple(
    {name: count for name, count in zip(NODES, counts, strict=True) if count}
    for counts in ((1, 0, 0), (0, 2, 0), (0, 0, 4), (4, 0, 0), (3, 0, 1), (0, 2, 2), (1, 1, 0))
)


def held(number: int, drawn: tuple[int, ...]) -> Workload:
    on, team, idle, priority, cpu, ago = drawn
    return holder(
        f"h{number:02}",
        SPREADS[on],
        tenant_id=TEAMS[team],
        queue=TEAMS[team],
        priority=(0, 0, 1)[priority],
        cpu_milli=(None, 1, 4)[cpu],
        evidence=evidence(idle=timedelta(hours=2 + idle)),
        admitted_at=(NOON - 5 * HOUR, NOON - 7 * HOUR, None)[ago],
    )


LOW = st.integers(0, 2)
HELD = st.lists(
    st.tuples(st.integers(0, len(SPREADS) - 1), st.integers(0, 1), LOW, LOW, LOW, LOW),
    max_size=MOST,
).map(lambda rows: tuple(held(number, row) for number, row in enumerate(rows)))
WAITS = st.builds(
    lambda count, size, cpu, within: waiter(
        "w",
        float(count * size),
        pod_gpu_count=size,
        cpu_milli=cpu,
        stays_within=within,
    ),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([None, 3, 6]),
    st.sampled_from([None, None, "rack"]),
)
LIMITS = st.builds(
    lambda workloads, tenants, ratio: caps(
        workloads_per_round=workloads,
        workloads_per_tenant_per_hour=tenants,
        gpu_ratio_per_hour=ratio,
    ),
    st.sampled_from([1, 3, 5, 100]),
    st.sampled_from([1, 2, 100]),
    st.sampled_from([0.25, 0.5, 1.0]),
)
GUARANTEES = st.tuples(*(st.integers(0, 12) for _ in TEAMS))


def quotas_of(guarantees: Sequence[int], workloads: Iterable[Workload]) -> tuple[QuotaUse, ...]:
    used = Counter[str | None]()
    for one in workloads:
        used[one.queue] += int(one.gpu_count)
    return tuple(
        quota(queue=team, guaranteed_gpu_count=float(most), used_gpu_count=float(used[team]))
        for team, most in zip(TEAMS, guarantees, strict=True)
    )


def planned(facts: Snapshot, by: Policy, *, more: Sequence[Decision] = ()) -> Plan:
    decisions = [due(one) for one in facts.workloads if not one.is_pending]
    return plan_from([*decisions, *more], facts, (by,), NOON)


def starts(asked: Workload, rooms: Sequence[NodeRoom], gone: Sequence[Workload]) -> bool:
    """Place the pods one after the other, wherever one finds room, in each place on its own."""
    size = asked.pod_gpu_count or 0
    count = int(asked.gpu_count) // size
    cpu = None if asked.cpu_milli is None else -(-asked.cpu_milli // count)
    usable = [room for room in rooms if room.gpu_model in asked.gpu_models]
    places = {room.rack if asked.stays_within else None for room in usable}
    for place in places:
        placed = 0
        for room in usable:
            if asked.stays_within and room.rack != place:
                continue
            gpus, cpus = room.free_count, room.free_cpu_milli
            for one in gone:
                there = sum(pod.gpu_count for pod in one.pods if pod.node == room.node)
                gpus += there
                if cpus is not None and one.cpu_milli is not None:
                    cpus += one.cpu_milli * there // int(one.gpu_count)
            while gpus >= size and (cpu is None or (cpus is not None and cpus >= cpu)):
                placed += 1
                gpus -= size
                cpus = None if cpus is None else cpus - (cpu or 0)
        if placed >= count:
            return True
    return False


def worth(gone: Sequence[Workload], facts: Snapshot) -> tuple[object, ...]:
    """Return what the written order of sets says of one, from its words."""
    over = 0.0
    for use in facts.quotas:
        beyond = max(0.0, (use.used_gpu_count or 0) - (use.guaranteed_gpu_count or 0))
        over += min(beyond, sum(one.gpu_count for one in gone if one.queue == use.queue))
    lost = 0.0
    emptied = 0
    idle: list[float] = []
    for one in gone:
        assert one.evidence is not None
        assert one.evidence.idle_since_at is not None
        idle.append(one.evidence.observed_idle_s)
        if one.admitted_at is None:
            lost = inf
        else:
            worked = one.evidence.idle_since_at - one.admitted_at
            lost += one.gpu_count * max(0.0, worked / HOUR)
    for room in facts.rooms:
        there = sum(pod.gpu_count for one in gone for pod in one.pods if pod.node == room.node)
        usable = room.gpu_model == "H100"
        emptied += usable and room.free_count < room.total_count <= room.free_count + there
    return (
        max(one.priority or 0 for one in gone),
        len(gone),
        sum(one.gpu_count for one in gone),
        -int(min(idle) // 3600),
        -over,
        lost,
        -emptied,
        tuple(one.uid for one in gone),
    )


def best_by_brute_force(facts: Snapshot, by: Policy) -> list[str]:
    """Look at every set of holders."""
    *found, asked = facts.workloads
    if starts(asked, facts.rooms, ()):
        return []
    steps = {one.uid: one for one in due_steps([due(one) for one in found], facts, (by,))}
    full = budget_at(facts, NOON)
    sets = (
        gone
        for size in range(1, len(found) + 1)
        for gone in combinations(found, size)
        if starts(asked, facts.rooms, gone) and full.lets_go(steps[one.uid] for one in gone)
    )
    best = min(sets, key=lambda gone: worth(gone, facts), default=())
    return [one.uid for one in best]


@settings(max_examples=EXAMPLES)
@given(ROOMS, HELD, WAITS, LIMITS, GUARANTEES)
def test_the_victims_are_those_of_brute_force(
    rooms: tuple[NodeRoom, ...],
    found: tuple[Workload, ...],
    asked: Workload,
    limits: object,
    guarantees: tuple[int, ...],
) -> None:
    by = replace(policy(rule(on_pressure=True)), caps=limits)  # type: ignore[arg-type]  # built above
    facts = snapshot(*found, asked, rooms=rooms, quotas=quotas_of(guarantees, found))
    plan = planned(facts, by)
    assert [one.workload_uid for one in plan.actions] == best_by_brute_force(facts, by)


@settings(max_examples=EXAMPLES)
@given(ROOMS, HELD, WAITS, LIMITS, st.tuples(GUARANTEES, GUARANTEES), st.booleans())
def test_raising_a_guarantee_never_evicts_more(
    rooms: tuple[NodeRoom, ...],
    found: tuple[Workload, ...],
    asked: Workload,
    limits: object,
    guarantees: tuple[tuple[int, ...], tuple[int, ...]],
    on_pressure: bool,
) -> None:
    """Neither more workloads nor more GPUs in all, nor more GPUs of the team whose it is."""
    by = replace(policy(rule(on_pressure=on_pressure)), caps=limits)  # type: ignore[arg-type]  # built above
    low, more = guarantees
    high = (low[0] + more[0], *low[1:])
    plans = []
    for each in (low, high):
        facts = snapshot(*found, asked, rooms=rooms, quotas=quotas_of(each, found))
        plans.append(planned(facts, by))
    team = {one.uid: one.tenant_id for one in found}

    def gpus(plan: Plan, *, of: str | None = None) -> float:
        return sum(
            one.gpu_count for one in plan.actions if of is None or team[one.workload_uid] == of
        )

    before, after = plans
    assert len(after.actions) <= len(before.actions)
    assert gpus(after) <= gpus(before)
    assert gpus(after, of=TEAMS[0]) <= gpus(before, of=TEAMS[0])


STEPS = st.tuples(
    st.sampled_from([None, Step.NOTIFY, Step.LOWER_PRIORITY, Step.SUSPEND]),
    st.sampled_from(["idle", "pressed"]),
)
PAST = st.lists(
    st.builds(
        lambda uid, minutes, outcome, step, team, gpus: past(
            uid,
            action_id=f"{uid}-{minutes}-{outcome}-{step}-{gpus}",
            begun_at=NOON - minutes * MINUTE,
            outcome=outcome,
            step=step,
            tenant_id=team,
            gpu_count=float(gpus),
        ),
        st.sampled_from(["h00", "h01", "g1", "g2"]),
        st.integers(0, 130),
        st.sampled_from(["begun", "done", "failed", "undone"]),
        st.sampled_from([Step.NOTIFY, Step.LOWER_PRIORITY, Step.SUSPEND]),
        st.sampled_from(TEAMS),
        st.integers(1, 8),
    ),
    max_size=4,
)
RULES = (rule(name="idle"), rule(name="pressed", on_pressure=True))


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Snapshot, list[Decision], Policy]:
    found = draw(HELD)
    waits = tuple(
        replace(draw(WAITS), uid=f"w{number}", priority=number % 2) for number in range(2)
    )
    wanted = draw(st.lists(STEPS, min_size=len(found), max_size=len(found)))
    decisions = [
        due(one, step, rule_name=name) for one, (step, name) in zip(found, wanted, strict=True)
    ]
    decisions += [due(one, None, verdict=Verdict.UNKNOWN) for one in waits]
    facts = snapshot(
        *found,
        *waits,
        rooms=draw(ROOMS),
        past_actions=tuple(draw(PAST)),
        disruptions=(budget(draw(st.integers(0, 6))),),
        quotas=quotas_of(draw(GUARANTEES), found),
    )
    return facts, decisions, policy(*RULES, limits=draw(LIMITS))


@settings(max_examples=EXAMPLES)
@given(rounds(), st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_rows(
    given_round: tuple[Snapshot, list[Decision], Policy], random: object
) -> None:
    facts, decisions, by = given_round

    def mixed(rows: Sequence[object]) -> tuple[object, ...]:
        found = list(rows)
        random.shuffle(found)  # type: ignore[attr-defined]  # hypothesis gives random.Random
        return tuple(found)

    names = ("workloads", "rooms", "disruptions", "quotas", "notices", "past_actions")
    other = replace(facts, **{name: mixed(getattr(facts, name)) for name in names})
    shuffled = plan_from(mixed(decisions), other, (by,), NOON)  # type: ignore[arg-type]  # same rows
    assert shuffled == plan_from(decisions, facts, (by,), NOON)


@settings(max_examples=EXAMPLES)
@given(rounds())
def test_caps_are_never_exceeded_and_every_due_step_has_its_answer(
    given_round: tuple[Snapshot, list[Decision], Policy],
) -> None:
    facts, decisions, by = given_round
    plan = plan_from(decisions, facts, (by,), NOON)
    team = {one.uid: one.tenant_id for one in facts.workloads}
    changing = [one for one in plan.actions if one.step is not Step.NOTIFY]
    recent = [
        one for one in facts.past_actions if one.begun_at > NOON - HOUR and one.step != Step.NOTIFY
    ]
    taken = {one.workload_uid: one.gpu_count for one in changing if one.step in TAKING_STEPS}
    before: dict[str, float] = {}
    for one in recent:
        if one.step in TAKING_STEPS:
            before[one.workload_uid] = max(one.gpu_count, before.get(one.workload_uid, 0.0))
    if changing:
        acted = {one.workload_uid for one in (*changing, *recent)}
        assert len(changing) <= by.caps.workloads_per_round
        assert len(acted) <= by.caps.workloads_per_hour
    if taken:
        total = sum(room.total_count for room in facts.rooms)
        assert sum({**before, **taken}.values()) <= by.caps.gpu_ratio_per_hour * total
    for one in changing:
        mine = {
            each.workload_uid
            for each in changing
            if team[each.workload_uid] == team[one.workload_uid]
        }
        mine |= {each.workload_uid for each in recent if each.tenant_id == team[one.workload_uid]}
        assert len(mine) <= by.caps.workloads_per_tenant_per_hour
    pods = sum(len(one.pods) for one in facts.workloads if one.uid in taken)
    assert pods <= facts.disruptions[0].allowed_disruption_count
    answered = Counter(one.workload_uid for one in (*plan.actions, *plan.deferred))
    assert answered == Counter(one.workload_uid for one in decisions if one.step is not None)
    assert [one.number for one in plan.actions] == list(range(1, len(plan.actions) + 1))


@settings(max_examples=EXAMPLES)
@given(rounds())
def test_room_is_made_only_where_what_waits_then_starts(
    given_round: tuple[Snapshot, list[Decision], Policy],
) -> None:
    facts, decisions, by = given_round
    decisions = [replace(one, rule="pressed") for one in decisions]
    plan = plan_from(decisions, replace(facts, past_actions=()), (by,), NOON)
    gone = [one for one in plan.actions if one.step is Step.SUSPEND]
    if gone:
        by_uid = {one.uid: one for one in facts.workloads}
        (served,) = {one.serves_workload_uid for one in gone}
        asked, victims = by_uid[served or ""], [by_uid[one.workload_uid] for one in gone]
        assert starts(asked, facts.rooms, victims)
        fewer = [[other for other in victims if other is not one] for one in victims]
        assert not any(starts(asked, facts.rooms, rest) for rest in fewer)


assert WIDE.workloads_per_round > MOST
