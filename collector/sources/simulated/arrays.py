"""From NumPy columns to Arrow columns: NaN becomes null, texts are picked from a few."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collector.sources.simulated.behaviours import Floats
from steward.units import MICROS_PER_SECOND

AnyArray: TypeAlias = "pa.Array[Any]"
"""Any Arrow column."""


def instants(epoch_s: Floats) -> AnyArray:
    """Return seconds since 1970 as UTC instants."""
    micros = (epoch_s * MICROS_PER_SECOND).astype(np.int64)
    return pa.array(micros.view("datetime64[us]"), pa.timestamp("us", tz="UTC"))


def constant(text: str, count: int) -> AnyArray:
    """Return the text this many times."""
    return picked(pa.array([text], pa.string()), np.zeros(int(count), dtype=np.int64))


def picked(
    choices: AnyArray,
    indices: npt.NDArray[np.int64],
    *,
    nulls: npt.NDArray[np.bool_] | None = None,
) -> AnyArray:
    """Return the choices at these indices; null where ``nulls`` says so."""
    return choices.take(pa.array(indices, pa.int64(), mask=nulls))


def numbers_of(values: Floats, *, is_integer: bool) -> AnyArray:
    """Return the values, NaN as null; whole numbers where the column holds such."""
    if not is_integer:
        return pa.array(values, pa.float64(), from_pandas=True)
    is_missing = np.isnan(values)
    return pa.array(np.where(is_missing, 0, values).astype(np.int64), pa.int64(), mask=is_missing)
