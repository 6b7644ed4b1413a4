"""Real texts of every vendor: the rows are the same with and without a server in between."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.backfill.answers import RawSeries
from collector.backfill.prometheus import device_names
from collector.backfill.scrapes import Assembler
from collector.backfill.telemetry import PastTelemetry
from collector.normalize import NormalizeState, normalize
from collector.sources.exposition import Exposition, ExpositionParser
from steward.units import MILLIS_PER_SECOND

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
AT_S = AT.timestamp()
OWN = {"instance": "10.0.0.7:9400", "job": "gpu"}
COPIED = re.compile(r'\b(?:instance|job)="[^"]*",')
"""Labels of the server that a text was copied from."""
TEXTS = (
    "01_dcgm_k8s_t4_fractional_runai",
    "02_dcgm_a100_mig_3instances_active",
    "04_dcgm_a100_mig_idle_allocated",
    "05_dcgm_a100_mig_disabled_idle",
    "05b_dcgm_a100_mig_enabled_empty",
    "06_dcgm_t4_plain_datadog",
    "07_nvidiasmi_h100_mig_load",
    "09_ascend_910A_real_docs",
    "11_hami_vgpumonitor_legacy",
    "13_amd_dme_real_lines",
    "14b_dcgm_invalid_line",
)


def kept(exposition: Exposition) -> list[RawSeries]:
    """Return the series a server keeps of a scrape: each once, as floats, with target labels.

    Times that the lines carry are left out, as a server does that is told ``honor_timestamps:
    false``; with them the lines are scrapes of other times.
    """
    found: dict[tuple[object, ...], RawSeries] = {}
    for name, labels, value, _ in exposition.samples:
        metric = {"__name__": name, **relabelled(labels.pairs)}
        key = tuple(sorted(metric.items()))
        found.setdefault(key, RawSeries(metric=metric, values=[(AT_S, repr(float(value)))]))
    return list(found.values())


def relabelled(said: Mapping[str, str]) -> dict[str, str]:
    """Return labels as ``honor_labels: false`` makes them; an empty label is none."""
    moved = {f"exported_{name}" if name in OWN else name: text for name, text in said.items()}
    return {name: text for name, text in {**moved, **OWN}.items() if text}


def told(rows: Mapping[str, list[dict[str, object]]]) -> dict[str, list[str]]:
    """Return rows in one order; a float cannot say which of DCGM's 64-bit blanks it was."""
    return {
        table: sorted(str(sorted(row.items())).replace("=not_supported", "=blank") for row in each)
        for table, each in rows.items()
    }


@pytest.mark.parametrize("name", TEXTS)
def test_a_server_in_between_changes_nothing(name: str, test_data: Path) -> None:
    text = (test_data / "exposition" / f"{name}.prom").read_text(encoding="utf-8")
    text = COPIED.sub("", text)
    exposition = ExpositionParser().parse(text)
    undated = [(each[0], each[1], each[2], None) for each in exposition.samples]
    plain = Exposition(samples=[*undated], types={}, helps={}, dropped={}, dropped_examples=())
    direct = normalize(
        plain,
        target="http://10.0.0.7:9400/metrics",
        cluster="default",
        scraped_at=AT,
        state=NormalizeState(),
    )
    series = kept(exposition)
    asked = set(device_names([each.metric["__name__"] for each in series]))
    up = RawSeries(metric={"__name__": "up", **OWN}, values=[(AT_S, "1")])
    (scrape,) = Assembler().take(
        [each for each in series if each.metric["__name__"] in asked],
        [up],
        until_ms=round(AT_S * MILLIS_PER_SECOND) + 1,
    )
    past = PastTelemetry(cluster="default").read(scrape, target_labels=up.metric)
    expected = {table: rows.to_pylist() for table, rows in direct.batches()}
    assert expected
    assert told({table: rows.to_pylist() for table, rows in past.rows}) == told(expected)
    assert past.normalized is not None
    assert set(past.normalized.holdings) == set(direct.holdings)
