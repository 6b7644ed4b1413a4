"""Work that waits far beyond its peers while later, not more urgent work of its size starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from analytics.queue.stages import ATTEMPT_ID
from analytics.survival import quantiles_s, survival
from analytics.waits import ATTEMPT

PEERS: Final = ("cluster", "gpu_models", "gang_size")
"""Peers ask for the same models and about as many GPUs."""
FEWEST_PEERS: Final = 20
"""With fewer attempts a 95 % quantile is one attempt's luck."""
FEWEST_OVERTAKING: Final = 3
"""One later start may be a gap that fitted; this many show an order that passes it by."""
PEERS_FOR_99: Final = 100
"""With fewer attempts the longest wait is itself the 99 % quantile."""
_BOUNDS: Final = (0.95, 0.99)


def starved(attempts: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts that others overtook, far beyond their peers.

    An attempt is starved if it waited longer than the 99 % Kaplan-Meier quantile of its peers (the
    95 % one of fewer than ``PEERS_FOR_99``, or where 99 % were not placed), and meanwhile at least
    ``FEWEST_OVERTAKING`` attempts in its cluster that were created later, are not more urgent,
    accept a model that it accepts and ask for as many GPUs or more were scheduled.

    Args:
        attempts: rows of ``waits.attempts`` with created_us and waited_us, as in
            ``stages.numbered``.

    Returns:
        one row per starved attempt, most overtaken first (ties by longest wait, then workload)
            the columns of the attempts, peer_wait_s f64 (the quantile), overtaken_count i64
        Attempts whose priority is not known are as urgent as the default, 0.
    """
    asking = attempts.select(
        *PEERS,
        ATTEMPT_ID,
        "created_us",
        "waited_us",
        "wait_s",
        "is_scheduled",
        "gpu_count",
        pl.col("priority").fill_null(0),
    ).filter((pl.col("gpu_count") > 0) & pl.col("wait_s").is_not_null())
    named = asking.with_columns(pl.col("gpu_models").fill_null(""))
    far = _far(named)
    found = far.select(ATTEMPT_ID, "peer_wait_s", overtaken_count=_overtaken(far, named))
    return attempts.join(
        found.filter(pl.col("overtaken_count") >= FEWEST_OVERTAKING), on=ATTEMPT_ID
    ).sort("overtaken_count", "wait_s", *ATTEMPT, descending=[True, True, *[False] * 3])


def _far(asking: pl.DataFrame) -> pl.DataFrame:
    """Return the attempts that waited far beyond their peers, with peer_wait_s."""
    is_many = pl.col("peer_count") >= PEERS_FOR_99
    curves = quantiles_s(survival(asking, *PEERS), _BOUNDS, *PEERS)
    sizes = asking.group_by(PEERS).agg(peer_count=pl.len())
    bounds = curves.join(sizes, on=PEERS, nulls_equal=True).select(
        *PEERS, "peer_count", peer_wait_s=pl.coalesce(pl.when(is_many).then("p99_s"), "p95_s")
    )
    return asking.join(
        bounds.filter(pl.col("peer_count") >= FEWEST_PEERS), on=PEERS, nulls_equal=True
    ).filter(pl.col("wait_s") > pl.col("peer_wait_s"))


class _Served:
    """Scheduled attempts of one cluster, in the order of their creation."""

    def __init__(self, served: pl.DataFrame) -> None:
        """Keep their columns."""
        ordered = served.sort("created_us")
        self._created, self._waited, self._priority, self._count = (
            ordered[name].to_numpy()
            for name in ("created_us", "waited_us", "priority", "gpu_count")
        )
        self._texts = ordered["gpu_models"].unique().sort()
        self._models = self._texts.search_sorted(ordered["gpu_models"]).to_numpy()

    def overtaking(self, row: Mapping[str, int], models: npt.NDArray[np.bool_]) -> int:
        """Return how many overtook this attempt: only those created while it waited can have."""
        since, until = row["created_us"], row["waited_us"]
        first, last = np.searchsorted(self._created, [since, until], side="right")
        here = slice(first, last)
        return int(
            np.count_nonzero(
                models[self._models[here]]
                & (self._waited[here] < until)
                & (self._priority[here] <= row["priority"])
                & (self._count[here] >= row["gpu_count"])
            )
        )

    def accepted(self, models: str) -> npt.NDArray[np.bool_]:
        """Return which of their texts of models share one with this text."""
        return np.array([_overlap(text, models) for text in self._texts], dtype=np.bool_)


def _overtaken(far: pl.DataFrame, asking: pl.DataFrame) -> pl.Series:
    """Count for each attempt those that overtook it."""
    by_cluster = {
        cluster: _Served(part)
        for (cluster,), part in asking.filter("is_scheduled")
        .partition_by("cluster", as_dict=True)
        .items()
    }
    asks = far.select("cluster", "gpu_models").unique().rows()
    accepted = {
        (cluster, models): by_cluster[cluster].accepted(models)
        for cluster, models in asks
        if cluster in by_cluster
    }
    columns = ("cluster", "gpu_models", "created_us", "waited_us", "priority", "gpu_count")
    counts = [
        by_cluster[row["cluster"]].overtaking(row, accepted[row["cluster"], row["gpu_models"]])
        if row["cluster"] in by_cluster
        else 0
        for row in far.select(columns).iter_rows(named=True)
    ]
    return pl.Series("overtaken_count", counts, dtype=pl.Int64)


def _overlap(one: str, other: str) -> bool:
    """Return whether there is a model that both accept; an empty text accepts any."""
    return not one or not other or not set(one.split("|")).isdisjoint(other.split("|"))
