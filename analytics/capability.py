"""What a GPU model can do: its tier S to D, memory, bandwidth, compute, links.

Names are matched however exporters, drivers and labels spell them. What the table does not know, or
the house sees otherwise, is recorded in ``state.capability``; a model that neither knows has no
tier: it is null and listed, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import polars as pl

from analytics.capability_table import MODELS, Model

TIERS: Final = ("S", "A", "B", "C", "D")
"""Strongest first."""
FLOORS: Final = {"S": (700.0, 2_500), "A": (300.0, 1_500), "B": (100.0, 500), "C": (50.0, 200)}
"""A model is of the first tier whose both floors it reaches: dense TFLOPS of BF16 (or the nearest
it has) and GB/s of memory bandwidth. Below all it is of tier D."""
GB_BYTES: Final = 1_000_000_000
GIB_BYTES: Final = 1_073_741_824
OWN: Final = "recorded"
"""Source of what was recorded in the house, before what the recorder says."""
_FORMS: Final = ("sxm", "pcie", "nvl", "oam")
_MEMORY_ERROR_RATIO: Final = 0.12
"""Sold and reported memory differ by up to this: units of 10^9 or 2^30 bytes, reserved parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """What one GPU model can do; None where neither table nor record says."""

    tier: str
    memory_bytes: int | None
    """The smallest that the name may mean."""
    bandwidth_gb_per_s: int | None
    compute_tflops: float | None
    """The largest that the name may mean, so that need told by it is never told too small."""
    generation: str | None
    link: str | None
    has_mig: bool | None
    source: str


def tier_of(compute_tflops: float, bandwidth_gb_per_s: float) -> str:
    """Return the tier of these figures."""
    for tier, (compute, bandwidth) in FLOORS.items():
        if compute_tflops >= compute and bandwidth_gb_per_s >= bandwidth:
            return tier
    return TIERS[-1]


def capability_of(
    name: str | None, *, memory_bytes: int | None = None, overrides: pl.DataFrame | None = None
) -> Capability | None:
    """Return what the model of this name can do, or None where it is not known.

    Args:
        name: as any source spells it.
        memory_bytes: what its devices report; it decides between variants and wins over the table.
        overrides: rows of ``state.capability``; of rows for one name, however spelled, the one
            recorded last counts, before the table.
    """
    if name is None:
        return None
    known = _from_table(name, memory_bytes)
    own = _override(name, overrides)
    if own is None:
        return known
    base = known or _nothing_known()
    said = own["memory_bytes"]
    memory = said if isinstance(said, int) and memory_bytes is None else base.memory_bytes
    source = f"{OWN}: {own['source']}"
    known_bytes = memory if memory_bytes is None else memory_bytes
    return replace(base, tier=str(own["tier"]), memory_bytes=known_bytes, source=source)


def with_capability(
    rows: pl.DataFrame, overrides: pl.DataFrame | None = None, *, model: str = "model"
) -> pl.DataFrame:
    """Return the rows in their order with ``capability`` (tier, str | null) of their GPU model."""
    names = rows[model].unique().sort().to_list()
    found = [capability_of(name, overrides=overrides) for name in names]
    tiers = [None if one is None else one.tier for one in found]
    table = pl.DataFrame(
        {model: names, "capability": tiers}, schema={model: pl.String, "capability": pl.String}
    )
    bare = rows.drop("capability", strict=False)
    return bare.join(table, on=model, how="left", nulls_equal=True, maintain_order="left")


def unknown_models(rows: pl.DataFrame) -> list[str]:
    """Return the models of rows of ``with_capability`` that have no tier, ascending."""
    missing = rows.filter(pl.col("capability").is_null())["model"]
    return sorted(missing.drop_nulls().unique().to_list())


def model_words(name: str) -> frozenset[str]:
    """Return the words of a model's name, without what makers and exporters put around it.

    Lower case; maker, brand, MIG profile and ``SHARED`` fall away; ``V100M32`` (32 GB) and
    ``Ascend910B3`` come apart; ``80GB HBM3`` of an H100 is its SXM form.
    """
    text = re.sub(r"-(mig-.*|shared)$", "", name.strip().lower())
    text = re.sub(r"nvidia|tesla|quadro|geforce|amd|instinct|huawei|ascend|atlas", " ", text)
    text = re.sub(r"\bv100m(\d+)", r"v100 \1gb", text)
    text = re.sub(r"\b(910b)[123]\b", r"\1", text)
    words = {_form(word) for word in re.split(r"[^a-z0-9]+", text) if word}
    if "hbm3" in words and words & {"h100", "h800"}:
        words.add("sxm")
    return frozenset(words)


def _form(word: str) -> str:
    return next((form for form in _FORMS if word.startswith(form)), word)


@lru_cache(maxsize=1024)
def _from_table(name: str, memory_bytes: int | None) -> Capability | None:
    words = model_words(name)
    named = [model for model in MODELS if model.words <= words]
    most = max((len(model.words) for model in named), default=0)
    found = [model for model in named if len(model.words) == most]
    if not found or len({model.words for model in found}) > 1:
        return None
    found = _narrowed(found, [model for model in found if model.form in words])
    found = _narrowed(found, [model for model in found if f"{model.memory_gb}gb" in words])
    if memory_bytes is not None:
        found = _narrowed(found, [model for model in found if _is_near(model, memory_bytes)])
    return _joined(found, memory_bytes)


def _narrowed(found: list[Model], narrower: list[Model]) -> list[Model]:
    """Return what is left, unless nothing is: then the name says something the table lacks."""
    return narrower or found


def _is_near(model: Model, memory_bytes: int) -> bool:
    sizes = (model.memory_gb * GB_BYTES, model.memory_gb * GIB_BYTES)
    low, high = min(sizes) * (1 - _MEMORY_ERROR_RATIO), max(sizes)
    return low <= memory_bytes <= high


def _joined(found: list[Model], memory_bytes: int | None) -> Capability:
    strongest = max(found, key=lambda model: (model.compute_tflops, model.bandwidth_gb_per_s))
    smallest = min(model.memory_gb for model in found) * GB_BYTES
    return Capability(
        tier=tier_of(strongest.compute_tflops, strongest.bandwidth_gb_per_s),
        memory_bytes=smallest if memory_bytes is None else memory_bytes,
        bandwidth_gb_per_s=strongest.bandwidth_gb_per_s,
        compute_tflops=strongest.compute_tflops,
        generation=strongest.generation,
        link=strongest.link,
        has_mig=strongest.has_mig,
        source=strongest.source,
    )


def _nothing_known() -> Capability:
    return Capability(
        tier=TIERS[-1],
        memory_bytes=None,
        bandwidth_gb_per_s=None,
        compute_tflops=None,
        generation=None,
        link=None,
        has_mig=None,
        source=OWN,
    )


def _override(name: str, overrides: pl.DataFrame | None) -> dict[str, object] | None:
    if overrides is None:
        return None
    words = model_words(name)
    rows = overrides.sort("capability_id").iter_rows(named=True)
    own = [row for row in rows if model_words(str(row["gpu_model"])) == words]
    return own[-1] if own else None
