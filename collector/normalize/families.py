"""In which unit a family is printed, where its name does not settle it.

``DCGM_FI_DEV_GPU_UTIL_RATIO`` is field 203, an integer percent, in DCGM 4.6 and field 1613, a ratio
0..1, in DCGM 4.7. Read as a ratio, every GPU of the older version above 1 % would be at 100 %.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from collector.normalize.metric import Metric
from collector.normalize.units import DEVICE_RATIO, PERCENT, UNSETTLED_RATIO, Unit
from collector.normalize.vendors.nvidia import PERCENT_GENERATION, RATIO_GENERATION

TWICE_USED_NAME: Final = "DCGM_FI_DEV_GPU_UTIL_RATIO"


def family_unit(metric: Metric, *, values: Collection[float], names: AbstractSet[str]) -> Unit:
    """Return the unit of a whole family in one scrape; ``UNSETTLED_RATIO`` where nothing tells.

    Args:
        metric: what the family's name means.
        values: all values of the family in this scrape, sentinels included.
        names: all names of this scrape: those of one generation come together.
    """
    if not metric.may_be_percent:
        return metric.unit
    plausible = [value for value in values if PERCENT.lowest <= value <= PERCENT.highest]
    if any(value > DEVICE_RATIO.highest for value in plausible):
        return PERCENT
    if metric.name != TWICE_USED_NAME or _are_ratios(plausible):
        return DEVICE_RATIO
    return _unit_of_generation(names)


def _are_ratios(values: Iterable[float]) -> bool:
    """Tell whether the values settle it: a part of one is no integer percent."""
    return any(value != int(value) for value in values)


def _unit_of_generation(names: AbstractSet[str]) -> Unit:
    is_percent = not names.isdisjoint(PERCENT_GENERATION)
    is_ratio = not names.isdisjoint(RATIO_GENERATION)
    if is_percent == is_ratio:
        return UNSETTLED_RATIO
    return PERCENT if is_percent else DEVICE_RATIO
