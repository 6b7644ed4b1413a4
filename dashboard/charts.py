"""Charts as pure functions from a frame to a specification; colours are fixed per meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import altair as alt
import polars as pl

LEAF_COLORS: Final[Mapping[str, str]] = {
    "used": "#2a7f62",
    "allocated_idle": "#e0a33a",
    "unknown_use": "#a99bc4",
    "down": "#9c2f2f",
    "stranded": "#d9702f",
    "reserved_unused": "#4b86b4",
    "free_idle": "#9aa7b5",
}
"""One colour per place where GPU-hours go, the same on every screen."""
OTHER_COLOR: Final = "#5b6675"
BAR_HEIGHT: Final = 40
LEGEND_HEIGHT: Final = 78
"""Room for the axis and up to two lines of legend below the bar."""
LIGHT_LEAVES: Final = frozenset({"allocated_idle", "unknown_use", "free_idle"})
"""Segments light enough to need a dark label."""
LABEL_FROM_RATIO: Final = 0.06
"""Narrower segments carry no label: it would not fit."""


def where_hours_went(leaves: pl.DataFrame) -> alt.LayerChart:
    """Return one 100 % stacked bar of GPU-hours.

    Args:
        leaves: one row per leaf, in stacking order
            leaf str, title str, gpu_hours f64, share_ratio f64
    """
    shares = leaves.with_columns(
        end_ratio=pl.col("share_ratio").cum_sum(),
        label=pl.when(pl.col("share_ratio") >= LABEL_FROM_RATIO)
        .then((pl.col("share_ratio") * 100).round(0).cast(pl.Int64).cast(pl.String) + " %")
        .otherwise(pl.lit("")),
        is_light=pl.col("leaf").is_in(sorted(LIGHT_LEAVES)),
    ).with_columns(
        start_ratio=pl.col("end_ratio") - pl.col("share_ratio"),
        middle_ratio=pl.col("end_ratio") - pl.col("share_ratio") / 2,
    )
    titles = shares["title"].to_list()
    colors = [LEAF_COLORS.get(leaf, OTHER_COLOR) for leaf in shares["leaf"]]
    base = alt.Chart(alt.InlineData(values=shares.to_dicts()))
    bars = base.mark_bar(height=BAR_HEIGHT, cornerRadius=1).encode(
        x=alt.X(
            "start_ratio:Q",
            scale=alt.Scale(domain=[0, 1], nice=False),
            axis=alt.Axis(format="%", tickCount=5, title=None, grid=False, domain=False),
        ),
        x2="end_ratio:Q",
        color=alt.Color(
            "title:N",
            scale=alt.Scale(domain=titles, range=colors),
            legend=alt.Legend(orient="bottom", title=None, columns=4, labelLimit=240),
        ),
        tooltip=[
            alt.Tooltip("title:N", title=" "),
            alt.Tooltip("gpu_hours:Q", title="GPU-hours", format=",.1f"),
            alt.Tooltip("share_ratio:Q", title="%", format=".1%"),
        ],
    )
    labels = base.mark_text(fontWeight="bold", fontSize=13).encode(
        x="middle_ratio:Q",
        text="label:N",
        color=alt.condition("datum.is_light", alt.value("#1a2330"), alt.value("#ffffff")),
    )
    layered: alt.LayerChart = (bars + labels).properties(height=BAR_HEIGHT + LEGEND_HEIGHT)
    return layered


def waiting_and_idle(points: pl.DataFrame, *, waiting: str, idle: str) -> alt.Chart:
    """Return GPUs asked for in vain and GPUs held by nobody as two lines over one time axis.

    Args:
        points: one row per instant, ascending
            at datetime[UTC], waiting_gpu_count f64 | null, idle_gpu_count f64 | null
        waiting: words for the first line.
        idle: words for the second line.
    """
    long = points.unpivot(
        on=["waiting_gpu_count", "idle_gpu_count"], index="at", variable_name="line"
    ).with_columns(
        line=pl.col("line").replace({"waiting_gpu_count": waiting, "idle_gpu_count": idle}),
        at=pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    lines: alt.Chart = (
        alt.Chart(alt.InlineData(values=long.to_dicts()))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X(
                "at:T",
                title=None,
                scale=alt.Scale(type="utc"),
                axis=alt.Axis(format="%m-%d %H:%M", tickCount=6, labelOverlap=True),
            ),
            y=alt.Y("value:Q", title="GPU", scale=alt.Scale(domainMin=0)),
            color=alt.Color(
                "line:N",
                scale=alt.Scale(
                    domain=[waiting, idle], range=["#9c2f2f", LEAF_COLORS["free_idle"]]
                ),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            tooltip=["line:N", alt.Tooltip("value:Q", format=",.1f"), "at:T"],
        )
        .properties(height=220)
    )
    return lines
