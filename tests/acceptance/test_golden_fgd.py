"""Fragmentation against the vectors of the FGD simulator's own unit tests."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from analytics.fragmentation import fragmentation, free_nodes

TOLERANCE_MILLI = 0.011


def test_every_vector(test_data: Path) -> None:
    golden = json.loads((test_data / "golden" / "fgd_vectors.json").read_text())
    targets = {
        name: pl.DataFrame(shapes).rename({"share": "share_ratio"})
        for name, shapes in golden["targets"].items()
    }
    found = {}
    for number, case in enumerate(golden["cases"]):
        node = pl.DataFrame(
            {
                "cpu_free_milli": [float(case["node"]["cpu_milli"])],
                "gpu_free_milli": [[float(free) for free in case["node"]["gpu_free_milli"]]],
                "gpu_model": [case["node"]["model"]],
            }
        )
        parts = fragmentation(free_nodes(node), targets[case["target"]])
        found[number] = float(parts["fragment_milli"][0])
    expected = {number: case["F"] for number, case in enumerate(golden["cases"])}
    assert len(expected) >= 7
    assert found == pytest.approx(expected, abs=TOLERANCE_MILLI)
