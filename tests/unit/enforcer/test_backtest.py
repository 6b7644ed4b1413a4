"""A backtest: what would be taken, what comes back, what starts early, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cache

import pytest

from analytics.cost.rates import Rates, rates
from enforcer.backtest import Trial, backtest
from enforcer.backtest_record import document_of, row_of
from enforcer.backtest_result import Backtest, Regret
from enforcer.backtest_text import difference_of, text_of
from enforcer.policies.model import Effect, Match, Mode, Policy
from steward.errors import UsageError
from steward.period import Period
from tests.support.enforcer_plan import policy, rule
from tests.support.enforcer_world import CLUSTER, HOUR, MINUTE, START, WORKING, World

EVERY = HOUR
TAKEN = START + 3 * HOUR
"""The first look that saw two hours of rest, an hour after the one that warned."""
FIVE = 5 * MINUTE
END = START + 30 * HOUR
ACTING = policy()
NO_PRICES: Sequence[dict[str, object]] = ()


def run(
    world: World,
    *,
    by: Policy = ACTING,
    until_at: datetime = END,
    prices: Sequence[dict[str, object]] = NO_PRICES,
    above: tuple[Policy, ...] = (),
) -> Backtest:
    period = Period(START, until_at)

    def pricing(models: Sequence[str], /) -> Rates:
        return rates(prices, period, models=models, cluster=CLUSTER)

    trial = Trial(policy=by, ancestors=above, cluster=CLUSTER, period=period, every=EVERY)
    return backtest(
        lambda asked: world.history(asked.until_at, from_at=asked.from_at), trial, pricing=pricing
    )


def idle(until_at: datetime = END, *, uid: str = "w1", uuid: str = "GPU-a") -> World:
    return World().node().job(uuid, uid=uid).reads(uuid, until_at=until_at, every=FIVE)


def back_after(hours: float) -> World:
    """Return a world in which the job that is taken works again so long afterwards."""
    back_at = TAKEN + timedelta(hours=hours)
    world = idle(back_at).reads(from_at=back_at, until_at=back_at + HOUR, every=FIVE, **WORKING)
    return world.reads(from_at=back_at + HOUR, until_at=END, every=FIVE)


def price(**told: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "price_id": 1,
        "gpu_model": "H100",
        "amount_micros_per_gpu_hour": 2_000_000,
        "currency": "USD",
        "valid_from_at": "2026-01-01T00:00:00Z",
        "source": "test",
        "approver": "test",
        "recorded_at": "2026-01-01T00:00:00Z",
        "purchase_type": "on_demand",
        "is_withdrawn": 0,
        "includes_energy": 1,
    }
    return {**plain, **told}


@cache
def of_idle() -> Backtest:
    return run(idle())


def test_what_never_works_again_is_taken_once_and_recovered_to_the_end() -> None:
    shown = of_idle()
    (taking,) = shown.takings
    assert (taking.workload_uid, taking.rule, taking.gpu_count) == ("w1", "idle", 1.0)
    assert taking.at == TAKEN
    assert taking.recovered_gpu_hours == 27
    assert shown.total.recovered_gpu_hours == 27
    assert (shown.notice_count, shown.round_count) == (1, 30)


def test_the_time_held_is_counted_with_what_was_seen_of_it() -> None:
    total = of_idle().total
    assert total.held_gpu_hours == 29  # the first look is at the moment in which it starts
    assert total.idle_gpu_hours == total.known_gpu_hours
    assert total.coverage_ratio == 1


@pytest.mark.parametrize(
    ("hours", "regrets"),
    [
        pytest.param(0.75, {1: True, 4: True, 24: True}, id="within an hour"),
        pytest.param(2.5, {1: False, 4: True, 24: True}, id="within four"),
        pytest.param(9, {1: False, 4: False, 24: True}, id="within a day"),
        pytest.param(25, {1: False, 4: False, 24: False}, id="later"),
    ],
)
def test_regret(hours: float, regrets: dict[int, bool]) -> None:
    taking = run(back_after(hours)).takings[0]
    assert taking.regrets == regrets
    assert taking.back_at is not None
    assert timedelta() <= taking.back_at - TAKEN - timedelta(hours=hours) <= EVERY


@pytest.mark.parametrize(
    ("until_at", "regrets"),
    [
        pytest.param(TAKEN + 30 * MINUTE, {1: None, 4: None, 24: None}, id="within the hour"),
        pytest.param(TAKEN + 2 * HOUR, {1: False, 4: None, 24: None}, id="past the hour"),
        pytest.param(END, {1: False, 4: False, 24: False}, id="past the day"),
    ],
)
def test_what_the_replay_does_not_reach_is_not_known(
    until_at: datetime, regrets: dict[int, bool | None]
) -> None:
    assert run(idle(), until_at=until_at).takings[0].regrets == regrets


def test_what_was_not_seen_afterwards_is_not_called_right() -> None:
    world = idle(START + 5 * HOUR).reads(from_at=START + 26 * HOUR, until_at=END, every=FIVE)
    (taking,) = run(world).takings
    assert taking.regrets == {1: False, 4: None, 24: None}


def test_a_job_that_ends_was_not_regretted_and_frees_nothing_any_more() -> None:
    world = World().node().workload().gpu()
    world.holds(ended_at=START + 5 * HOUR).reads(until_at=END, every=FIVE)
    shown = run(world)
    (taking,) = shown.takings
    assert taking.regrets == {1: False, 4: False, 24: False}
    assert taking.recovered_gpu_hours == 1  # to the last look that saw it


def test_without_readings_nothing_is_taken_and_the_result_says_so() -> None:
    shown = run(World().node().job("GPU-a"))
    assert (shown.takings, shown.total.held_gpu_hours) == ((), 29)
    assert (shown.total.coverage_ratio, shown.regret_24h_ratio) == (0.0, None)


def test_of_nothing_nothing_is_known() -> None:
    total = run(World().node()).total
    assert (total.held_gpu_hours, total.coverage_ratio, total.recovered_ratio) == (0, None, None)
    assert total.regrets[24] == Regret(regretted_count=0, known_count=0)


def test_the_policy_acts_in_the_replay_whatever_its_mode() -> None:
    assert run(idle(), by=replace(ACTING, mode=Mode.OBSERVE)).takings == of_idle().takings


def test_an_exemption_of_its_parent_holds() -> None:
    exempt = rule(name="kept", effect=Effect.EXEMPT, match=Match(tenant=("team-a",)))
    parent = replace(policy(exempt), name="above")
    shown = run(idle(), by=replace(ACTING, parent="above"), above=(parent,))
    assert shown.takings == ()


class TestMoney:
    def test_recovered_hours_are_priced_exactly(self) -> None:
        shown = run(idle(), prices=[price()])
        assert shown.total.money == {"USD": Fraction(54_000_000)}
        assert shown.total.unpriced_gpu_hours == 0

    def test_a_team_with_a_price_of_its_own_pays_that(self) -> None:
        own = price(price_id=2, tenant_id="team-a", amount_micros_per_gpu_hour=3_000_000)
        assert run(idle(), prices=[own, price()]).total.money == {"USD": Fraction(81_000_000)}

    def test_without_a_price_there_is_no_money_rather_than_none_of_it(self) -> None:
        shown = run(idle())
        assert (shown.takings[0].money, shown.total.money) == (None, {})
        assert shown.total.unpriced_gpu_hours == 27

    def test_a_price_that_ends_in_between_prices_nothing_by_half(self) -> None:
        ends = price(valid_until_at="2026-05-04T12:00:00Z")
        assert run(idle(), prices=[ends]).takings[0].money is None

    def test_a_free_gpu_costs_nothing(self) -> None:
        shown = run(idle(), prices=[price(amount_micros_per_gpu_hour=0)])
        assert shown.total.money == {"USD": Fraction(0)}


def waiting_world(*, started_at: datetime | None) -> World:
    """Return an idle job on the only GPU, and one that waits for it until it starts elsewhere."""
    world = idle().workload("w2", gpu_models="H100")
    if started_at is not None:
        world.node("n2").gpu("GPU-b", node="n2")
        world.holds("GPU-b", uid="w2", at=started_at, node="n2")
        world.holds("GPU-b", uid="w3", at=START, node="n2", ended_at=started_at)
    return world


PRESSED = policy(rule(on_pressure=True))


class TestQueue:
    def test_a_waiting_job_starts_where_room_is_made_for_it(self) -> None:
        shown = run(waiting_world(started_at=START + 12 * HOUR - MINUTE), by=PRESSED)
        (taking,) = shown.takings
        assert taking.serves_workload_uid == "w2"
        assert (shown.queue.started_count, shown.queue.open_count) == (1, 0)
        assert shown.queue.saved_hours == 9
        assert shown.queue.saved_gpu_hours == 9

    def test_one_that_never_starts_saves_at_least_the_rest(self) -> None:
        queue = run(waiting_world(started_at=None), by=PRESSED).queue
        assert (queue.started_count, queue.open_count, queue.saved_hours) == (1, 1, 27)

    def test_where_nobody_waits_pressure_takes_nothing(self) -> None:
        shown = run(idle(), by=PRESSED)
        assert (shown.takings, shown.deferred) == ((), {"no_pressure": 1})


def test_a_job_that_comes_back_often_is_left_alone() -> None:
    world = World().node().job("GPU-a")
    at = START
    while at < END:
        world.reads(from_at=at, until_at=at + 4 * HOUR, every=FIVE)
        world.reads(from_at=at + 4 * HOUR, until_at=at + 5 * HOUR, every=FIVE, **WORKING)
        at += 5 * HOUR
    shown = run(world, until_at=START + 24 * HOUR)
    assert len(shown.takings) == 2
    assert shown.deferred == {"ping_pong": 1}
    assert shown.regret_24h_ratio == 1


def test_looks_further_apart_than_a_window_are_refused() -> None:
    with pytest.raises(UsageError, match="does not see all"):
        Trial(
            policy=ACTING,
            ancestors=(),
            cluster=CLUSTER,
            period=Period(START, END),
            every=2 * HOUR,
        )


def test_what_is_recorded_gives_leave_by_regret_and_coverage() -> None:
    row = row_of(run(back_after(9)), author="ops")
    assert (row["policy"], row["policy_version"], row["author"]) == ("p", 1, "ops")
    assert (row["action_count"], row["regret_24h_micros"]) == (2, 1_000_000)
    assert row["from_at"] == "2026-05-04T00:00:00Z"


def test_the_document_names_every_taking() -> None:
    document = document_of(run(idle(), prices=[price()]))
    assert document["total"] == {
        "held_gpu_hours": 29.0,
        "idle_gpu_hours": of_idle().total.idle_gpu_hours,
        "coverage_ratio": of_idle().total.coverage_ratio,
        "action_count": 1,
        "recovered_gpu_hours": 27.0,
        "recovered_ratio": 27 / 29,
        "unpriced_gpu_hours": 0.0,
        "recovered_money": {"USD": "54.000000"},
        "lost_gpu_hours": 0.0,
        "regret": {
            f"{hours}h": {"regretted_count": 0, "known_count": 1, "ratio": 0.0}
            for hours in (1, 4, 24)
        },
    }


def test_the_text_for_people() -> None:
    text = text_of(run(idle(), prices=[price()]), bound=0.05)
    assert "27.0 GPU-hours recovered, 93.1% of what is held" in text
    assert "regret within 24 h 0.0% (0 of 1), asked is less than 5.0%" in text
    total = next(line for line in text.splitlines() if line.startswith("total"))
    assert total.split()[-1] == "54.00"


def test_the_text_of_nothing_says_that_nothing_is_known() -> None:
    text = text_of(run(World().node()), bound=0.05)
    assert "not known of what is held; regret within 24 h not known" in text


def test_two_policies_side_by_side() -> None:
    later = replace(ACTING, version=2, rules=PRESSED.rules)
    text = difference_of(of_idle(), run(idle(), by=later))
    assert "p version 1 beside p version 2" in text
    changed = next(line for line in text.splitlines() if line.startswith("recovered GPU-hours"))
    assert changed.split()[-3:] == ["27", "0", "-27"]
    assert "taken from only before" in text
