"""GPU models: names, tiers, and what is recorded over the table."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from analytics.capability import (
    FLOORS,
    GB_BYTES,
    GIB_BYTES,
    TIERS,
    capability_of,
    tier_of,
    unknown_models,
    with_capability,
)
from analytics.capability_table import FROM_MEMORY, MODELS, Model
from analytics.inputs import SCHEMAS

ROOT = Path(__file__).parents[3]


def recorded(*rows: tuple[int, str, str, int | None]) -> pl.DataFrame:
    """Return rows of state.capability."""
    columns = {
        "capability_id": [row[0] for row in rows],
        "gpu_model": [row[1] for row in rows],
        "tier": [row[2] for row in rows],
        "memory_bytes": [row[3] for row in rows],
        "source": ["bench" for _ in rows],
        "author": ["ann" for _ in rows],
        "recorded_at": [None for _ in rows],
    }
    return pl.DataFrame(columns, schema=SCHEMAS["state.capability"])


@pytest.mark.parametrize(
    ("name", "tier", "memory_gb"),
    [
        pytest.param("NVIDIA A100-SXM4-40GB", "A", 40, id="driver's name"),
        pytest.param("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A", 40, id="label of a MIG node"),
        pytest.param("NVIDIA-A100-SXM4-40GB-SHARED", "A", 40, id="label of a shared node"),
        pytest.param("NVIDIA A100 80GB PCIe", "A", 80, id="memory before form"),
        pytest.param("Tesla T4", "C", 16, id="Tesla"),
        pytest.param("Tesla V100-SXM2-32GB", "B", 32, id="V100 with memory"),
        pytest.param("V100M16", "B", 16, id="trace spelling, 16 GB"),
        pytest.param("V100M32", "B", 32, id="trace spelling, 32 GB"),
        pytest.param("Tesla P100-PCIE-16GB", "D", 16, id="P100"),
        pytest.param("NVIDIA H100 80GB HBM3", "S", 80, id="H100 SXM as NVML spells it"),
        pytest.param("NVIDIA H100 PCIe", "A", 80, id="H100 PCIe"),
        pytest.param("NVIDIA H100 NVL", "S", 94, id="H100 NVL"),
        pytest.param("H100-SXM-80GB", "S", 80, id="H100 by hand"),
        pytest.param("H100", "S", 80, id="plain name means the strongest form"),
        pytest.param("NVIDIA GH200 480GB", "S", 96, id="memory of the processor is ignored"),
        pytest.param("NVIDIA RTX A4000", "C", 16, id="workstation"),
        pytest.param("Quadro RTX 6000", "B", 24, id="Turing RTX 6000"),
        pytest.param("NVIDIA RTX 6000 Ada Generation", "B", 48, id="Ada RTX 6000"),
        pytest.param("NVIDIA GeForce RTX 4090", "B", 24, id="4090"),
        pytest.param("NVIDIA A10G", "C", 24, id="A10G is not A10"),
        pytest.param("NVIDIA A10", "B", 24, id="A10"),
        pytest.param("NVIDIA L40S", "B", 48, id="L40S is not L40"),
        pytest.param("NVIDIA B200", "S", 180, id="B200"),
        pytest.param("NVIDIA GB200", "S", 186, id="GB200 is not B200"),
        pytest.param("AMD Instinct MI300X OAM", "S", 192, id="MI300X"),
        pytest.param("Aqua Vanjaram [Instinct MI325X VF]", "S", 256, id="MI325X guest"),
        pytest.param("910A-Ascend-V1", "B", 32, id="Ascend 910A"),
        pytest.param("Ascend910B3", "A", 64, id="Ascend 910B3"),
        pytest.param("Ascend 910B4", "B", 32, id="Ascend 910B4"),
        pytest.param("Tesla K80", "D", 12, id="Kepler"),
    ],
)
def test_spelling_is_known(name: str, tier: str, memory_gb: int) -> None:
    found = capability_of(name)
    assert found is not None
    assert (found.tier, found.memory_bytes) == (tier, memory_gb * GB_BYTES)


@pytest.mark.parametrize(
    "name",
    ["G2", "MISC", "NVIDIA T400 4GB", "AMD Radeon", "", "xxxx", "A100 or V100", None],
)
def test_unknown_model_has_no_tier(name: str | None) -> None:
    assert capability_of(name) is None


@pytest.mark.parametrize("tier", TIERS[:-1])
def test_floors_of_a_tier(tier: str) -> None:
    compute, bandwidth = FLOORS[tier]
    below = TIERS[TIERS.index(tier) + 1]
    assert tier_of(compute + 1, bandwidth + 1) == tier
    assert tier_of(compute, bandwidth) == tier
    assert tier_of(compute - 0.1, bandwidth) == below
    assert tier_of(compute, bandwidth - 1) == below


def test_memory_of_devices_decides_between_variants_and_wins() -> None:
    found = capability_of("NVIDIA A100", memory_bytes=85_899_345_920)
    assert found is not None
    assert (found.memory_bytes, found.bandwidth_gb_per_s) == (85_899_345_920, 2_039)


def test_memory_unlike_any_variant_still_wins() -> None:
    found = capability_of("Tesla T4", memory_bytes=8 * GIB_BYTES)
    assert found is not None
    assert (found.tier, found.memory_bytes) == ("C", 8 * GIB_BYTES)


def test_last_record_wins_over_the_table_however_spelled() -> None:
    overrides = recorded(
        (1, "A100-SXM4-40GB", "S", None),
        (3, "NVIDIA A100-SXM4-40GB", "B", 7),
        (2, "a100 sxm4 40gb", "C", 9),
    )
    found = capability_of("NVIDIA-A100-SXM4-40GB", overrides=overrides)
    assert found is not None
    assert (found.tier, found.memory_bytes, found.source) == ("B", 7, "recorded: bench")
    assert found.compute_tflops == 312


def test_record_makes_an_unknown_model_known_without_figures() -> None:
    found = capability_of("G2", overrides=recorded((1, "G2", "B", None)))
    assert found is not None
    assert (found.tier, found.memory_bytes, found.compute_tflops) == ("B", None, None)


def test_rows_keep_their_order_and_get_their_tier() -> None:
    rows = pl.DataFrame({"model": ["T4", None, "G2", "H100", "T4"], "n": [1, 2, 3, 4, 5]})
    found = with_capability(rows)
    assert found["capability"].to_list() == ["C", None, None, "S", "C"]
    assert found["n"].to_list() == [1, 2, 3, 4, 5]
    assert unknown_models(found) == ["G2"]


def test_no_rows_have_no_tier() -> None:
    assert with_capability(pl.DataFrame(schema={"model": pl.String})).columns == [
        "model",
        "capability",
    ]


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda m: f"{' '.join(sorted(m.words))} {m.form} {m.memory_gb}"
)
def test_every_row_is_found_by_its_own_name_and_says_where_it_is_from(model: Model) -> None:
    name = f"{' '.join(sorted(model.words))} {model.form or ''} {model.memory_gb}GB"
    found = capability_of(name)
    assert found is not None
    assert found.memory_bytes == model.memory_gb * GB_BYTES
    assert model.source.split(";")[0] == FROM_MEMORY


@pytest.mark.parametrize(
    "model", MODELS, ids=lambda m: f"{' '.join(sorted(m.words))} {m.form} {m.memory_gb}"
)
def test_every_row_is_documented_with_its_source(model: Model) -> None:
    page = (ROOT / "docs" / "capacity.md").read_text(encoding="utf-8")
    tier = tier_of(model.compute_tflops, model.bandwidth_gb_per_s)
    figures = f"{model.memory_gb} | {model.bandwidth_gb_per_s:,} | {model.compute_tflops:g} |"
    (line,) = [
        line
        for line in page.splitlines()
        if figures in line
        and line.endswith(f"| {tier} | {model.source} |")
        and set(line.split("|")[1].split()) == model.words
        and line.split("|")[2].strip() == (model.form or "")
    ]
    assert model.generation in line
