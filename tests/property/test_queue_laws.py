"""Laws of the decomposition of waits, on random histories."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.queue.decomposition import COLUMNS, decompose
from analytics.queue.evidence import evidence
from analytics.queue.free import free_boards
from analytics.survival import quantiles_s, survival, survival_quantile_s
from analytics.waits import attempts
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON
from tests.support.queue_story import TEN_HOURS, Story

STEPS = ("created", "quota_reserved", "admitted", "scheduled", "started", "finished")
WORDS = st.sampled_from(
    ["WaitingForQuota", "TopologyPlacementFailed", "Suspended", "MoonPhase", "Pending"]
)
minutes = st.integers(min_value=-120, max_value=720)


@st.composite
def histories(draw: st.DrawFn) -> Story:
    """Return a cluster of two models in which jobs wait in all ways; one shows all steps early.

    Each queued job says why it waits from its creation on, so that no later row changes what its
    first minutes were.
    """
    story = Story().node().node("n2", gpus=4, model="A100")
    story.job("early", gpu_models=None)
    story.steps("early", created=-120, quota_reserved=-120, admitted=-120, scheduled=-120)
    story.steps("early", started=-120, finished=-119).pod_says(-120, uid="early")
    for index in range(8):
        first, last = sorted(draw(st.tuples(minutes, minutes)))
        story.hold(f"n1/{index}", since=first, until=last, pod=f"h-{index}")
    for index in range(draw(st.integers(1, 4))):
        _wait(draw, story, f"job-{index}")
    return story


def _wait(draw: st.DrawFn, story: Story, uid: str) -> None:
    is_queued = draw(st.booleans())
    story.job(
        uid,
        queue="team-a" if is_queued else None,
        gpu_count=draw(st.sampled_from([0, 1, 4, 7, 8, 9, None])),
        gpu_models=draw(st.sampled_from(["H100", "A100", "A100|H100", None])),
    )
    count = draw(st.integers(1, len(STEPS)))
    times = sorted(draw(st.lists(minutes, min_size=count, max_size=count)))
    steps = dict(zip(STEPS, times, strict=False))
    if not is_queued:
        steps = {name: at for name, at in steps.items() if name[:5] not in {"quota", "admit"}}
    story.steps(uid, **steps)
    if is_queued:
        for at in [times[0], *draw(st.lists(minutes, max_size=3))]:
            story.waits_for_quota(at, draw(WORDS), uid=uid)
    if "admitted" in steps or not is_queued:
        for at in draw(st.lists(st.integers(steps.get("admitted", times[0]), 720), max_size=2)):
            story.pod_says(at, draw(st.sampled_from(["Unschedulable", "SchedulingGated"])), uid=uid)


def parts(frames: dict[str, pl.DataFrame], period: Period) -> pl.DataFrame:
    rows = attempts(frames["transition_history"], frames["workload_current"], period)
    said = evidence(frames["condition_history"], frames["scheduling_event"], rows)
    free = free_boards(frames, period)
    return decompose(rows, said, free=free, period=period).attempts


@given(histories())
@settings(max_examples=200)
def test_parts_are_the_whole_wait_to_the_microsecond(story: Story) -> None:
    rows = parts(story.frames(), TEN_HOURS)
    inside = rows.select(
        start=pl.max_horizontal("created_us", pl.lit(NOON).dt.epoch("us")),
        end=pl.min_horizontal("ready_us", pl.lit(TEN_HOURS.until_at).dt.epoch("us")),
    )
    waited = (inside["end"] - inside["start"]).clip(lower_bound=0)
    assert rows.select(pl.sum_horizontal(COLUMNS)).to_series().to_list() == waited.to_list()
    assert rows["wait_us"].to_list() == waited.to_list()
    assert rows.select(pl.min_horizontal(COLUMNS).min()).item() >= 0


@given(histories(), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=100)
def test_order_and_repeats_of_rows_do_not_matter(
    story: Story, random: st.DataObject, is_repeated: object
) -> None:
    frames = story.frames()
    told = ("transition_history", "condition_history", "scheduling_event")
    other = {
        name: frame.sample(
            fraction=1.0,
            shuffle=True,
            seed=random.randint(0, 9),  # type: ignore[attr-defined]  # a Random
        )
        for name, frame in frames.items()
    }
    if is_repeated:
        other |= {name: pl.concat([other[name], other[name]]) for name in told}
    expected, found = parts(frames, TEN_HOURS), parts(other, TEN_HOURS)
    assert found.equals(expected)


@given(histories(), st.integers(1, 599))
@settings(max_examples=100)
def test_cutting_the_period_adds(story: Story, minute: int) -> None:
    frames = story.frames()
    cut = NOON + minute / 60 * HOUR
    whole, first, second = (
        parts(frames, period).select(pl.col(COLUMNS).sum()).row(0)
        for period in (
            TEN_HOURS,
            Period(TEN_HOURS.from_at, cut),
            Period(cut, TEN_HOURS.until_at),
        )
    )
    assert [one + other for one, other in zip(first, second, strict=True)] == list(whole)


@given(histories())
@settings(max_examples=100)
def test_more_free_gpus_never_make_more_waiting_for_capacity(story: Story) -> None:
    before = parts(story.frames(), TEN_HOURS)
    after = parts(story.node("n3").frames(), TEN_HOURS)
    assert (after["capacity_us"] <= before["capacity_us"]).all()
    assert (after["wait_us"] == before["wait_us"]).all()


waits = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.booleans()), min_size=1, max_size=30
)


@given(waits)
@settings(max_examples=200)
def test_curves_of_groups_are_those_of_each_alone(given_waits: list[tuple[str, int, bool]]) -> None:
    schema = {"key": pl.String, "wait_s": pl.Float64, "is_scheduled": pl.Boolean}
    frame = pl.DataFrame(given_waits, schema=schema, orient="row", strict=False)
    together = quantiles_s(survival(frame, "key"), (0.5, 0.9), "key")
    for key, half, most in together.iter_rows():
        curve = survival(frame.filter(pl.col("key") == key))
        assert half == survival_quantile_s(curve, 0.5)
        assert most == survival_quantile_s(curve, 0.9)
