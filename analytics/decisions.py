"""What is worth deciding: each kind of candidate, with what is at stake and its evidence."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.stakes import NAMED_COUNT, Candidate, Charged, Stake
from analytics.usage import leaf
from analytics.utilization import PUBLISH_COVERAGE_RATIO
from steward.units import TICKS_PER_GPU_HOUR, TICKS_PER_SECOND

JOB: Final = ("cluster", "workload_uid")


def reclaim(ledger: Charged, spells: pl.DataFrame) -> Candidate:
    """Return the candidate of taking back GPUs that their holders leave at rest.

    Args:
        ledger: the charged ledger.
        spells: rows of ``spells.idle_spells``: only jobs with one count, all their rest then does.
    """
    held = _of_jobs(ledger, spells)
    ticks = pl.col("idle_ticks")
    count = held.rows.select(JOB).n_unique()
    return Candidate(
        key="reclaim_idle",
        text=f"Reclaim GPUs that {_count(count, 'job')} held idle",
        stake=held.stake(ticks),
        evidence=f"{_count(spells.height, 'spell')} of 10 minutes or more at rest; most: "
        + held.most(ticks, keys=("tenant_id", "job"), unknown="unknown job"),
        row_count=count,
        coverage_ratio=ledger.coverage_ratio,
        rows="rest",
    )


def stuck(ledger: Charged, spells: pl.DataFrame) -> Candidate:
    """Return the candidate of restarting jobs that look busy while nothing works.

    Args:
        ledger: the charged ledger.
        spells: rows of ``spells.stuck_spells``.
    """
    held = _of_jobs(ledger, spells)
    ticks = (pl.col("stuck_s") * TICKS_PER_SECOND).round().cast(pl.Int64)
    count = held.rows.select(JOB).n_unique()
    return Candidate(
        key="stuck_suspects",
        text=f"Look into {_count(count, 'job')} suspected stuck",
        stake=held.stake(ticks),
        evidence=f"{_count(spells.height, 'spell')} of 15 minutes or more that look busy while "
        "nothing works (power not consulted); most: "
        + held.most(ticks, keys=("tenant_id", "job"), unknown="unknown job"),
        row_count=count,
        coverage_ratio=ledger.coverage_ratio,
        rows="rest",
    )


def unstrand(ledger: Charged) -> tuple[Candidate, ...]:
    """Return the candidates of making stranded GPUs of use, by why they are stranded."""
    texts = {
        "mig_geometry": ("repartition_mig", "Re-partition MIG boards", "no MIG instance covers it"),
        "no_shape_fits": (
            "defragment",
            "Defragment, or add CPU",
            "free, but no shape of the expected work fits",
        ),
    }
    ticks, found = leaf("stranded"), []
    for reason, (key, text, why) in texts.items():
        part = ledger.part(pl.col("reason") == reason, pl.col("stranded_ticks") > 0)
        count = part.rows.select("cluster", "node").n_unique()
        found.append(
            Candidate(
                key=key,
                text=f"{text} on {_count(count, 'node')}",
                stake=part.stake(ticks),
                evidence=f"{why}; most: "
                + part.most(ticks, keys=("cluster", "node"), unknown="unknown node"),
                row_count=count,
                coverage_ratio=None,
                rows="ledger",
            )
        )
    return tuple(found)


def lend(ledger: Charged) -> Candidate:
    """Return the candidate of lending out, or giving up, guarantees that were left unused."""
    ticks = leaf("reserved_unused")
    part = ledger.part(pl.col("reserved_unused_ticks") > 0)
    count = part.rows.select("cluster", "queue").n_unique()
    return Candidate(
        key="lend_reserved",
        text=f"Lend out or shrink the guarantees that {_count(count, 'queue')} left unused",
        stake=part.stake(ticks),
        evidence="free within a guarantee, and nobody borrowed it; most: "
        + part.most(ticks, keys=("tenant_id", "queue"), unknown="unknown queue"),
        row_count=count,
        coverage_ratio=None,
        rows="ledger",
    )


def place_waiting(
    ledger: Charged, points: pl.DataFrame, *, step_s: float, waiting_count: int
) -> Candidate:
    """Return the candidate of giving free GPUs to work that waited at the same time.

    Args:
        ledger: the charged ledger.
        points: rows of ``placeable``, at regular steps; instants at which nothing is known are
            left out.
        step_s: time between two instants.
        waiting_count: attempts that waited in the period.
    """
    counts = points["placeable_gpu_count"].drop_nulls()
    free = ledger.stake(leaf("free_idle"))
    ticks = round(float(counts.sum()) * step_s * TICKS_PER_SECOND)
    most = float(counts.to_frame().max().item()) if len(counts) else 0.0
    return Candidate(
        key="place_waiting",
        text=f"Place work that waited ({_count(waiting_count, 'attempt')}) on free GPUs, "
        "or find out what stops it",
        stake=free.portion(min(ticks, free.ticks)),
        evidence=f"up to {most:,.1f} GPUs were waited for while as many that the waiting work "
        "accepts were free in its cluster (CPU, memory, quota and gangs not consulted)",
        row_count=waiting_count,
        coverage_ratio=None,
        rows="transition_history",
    )


def move_down(above: pl.DataFrame, ledger: Charged) -> Candidate:
    """Return the candidate of giving jobs a weaker GPU model that would have carried them.

    Args:
        above: rows of ``need_cost.cheapest`` with job str | null, the name of the workload; of
            these, what would have saved money.
        ledger: the charged ledger.

    Its money is the difference of prices, not the whole cost; without prices nothing is won.
    """
    told = above.filter(pl.col("currency").is_in(list(ledger.factors)), pl.col("saving_parts") > 0)
    ticks = round(float(told["gpu_hours"].sum()) * TICKS_PER_GPU_HOUR)
    saved = [
        row["saving_parts"] * ledger.factors[row["currency"]] for row in told.iter_rows(named=True)
    ]
    most = [
        f"{row['tenant_id'] or 'unknown tenant'}/{row['job']} from {row['model']} to "
        f"{row['model_there']}, {row['gpu_hours']:,.1f} GPU-hours"
        for row in told.head(NAMED_COUNT).iter_rows(named=True)
    ]
    return Candidate(
        key="move_down",
        text=f"Move {_count(told.height, 'job')} to a weaker GPU model that would carry them",
        stake=Stake(ticks=ticks, priced_ticks=ticks, parts=sum(saved) if saved else None),
        evidence="effective use, bandwidth and peak memory fit it; most: " + ", ".join(most),
        row_count=told.height,
        coverage_ratio=ledger.coverage_ratio,
        rows="ledger",
    )


def know_use(ledger: Charged) -> Candidate | None:
    """Return the candidate of observing more, None where enough is known to publish means."""
    coverage = ledger.coverage_ratio
    if coverage is None or coverage >= PUBLISH_COVERAGE_RATIO:
        return None
    ticks = leaf("unknown_use")
    part = ledger.part(pl.col("unknown_ticks") > 0)
    return Candidate(
        key="restore_readings",
        text="Find out what unknown device-time was used for: read more GPUs, name more holders",
        stake=part.stake(ticks),
        evidence="reasons: "
        + part.most(ticks, keys=("reason",), unknown="readings say little").replace("_", " "),
        row_count=part.rows.select("cluster", "node").n_unique(),
        coverage_ratio=coverage,
        rows="ledger",
    )


def record_prices(ledger: Charged) -> Candidate:
    """Return the candidate of recording prices that are missing."""
    ticks = pl.col("wall_ticks")
    is_priced = pl.col("currency").is_in(list(ledger.factors)).fill_null(value=False)
    part = ledger.part(~is_priced)
    count = part.rows["model"].n_unique()
    return Candidate(
        key="record_prices",
        text=f"Record prices of {_count(count, 'GPU model')}: without them nothing has its money",
        stake=part.stake(ticks),
        evidence="without a price: "
        + part.most(ticks, keys=("cluster", "model"), unknown="unknown model"),
        row_count=count,
        coverage_ratio=None,
        rows="state.price",
        is_last=True,
    )


def _of_jobs(ledger: Charged, spells: pl.DataFrame) -> Charged:
    """Return held rows of the jobs that have a spell."""
    held = ledger.rows.filter("is_held")
    jobs = spells.select(JOB).unique()
    return Charged(
        rows=held.join(jobs, on=JOB, how="semi", nulls_equal=True), factors=ledger.factors
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
