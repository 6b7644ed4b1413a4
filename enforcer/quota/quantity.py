"""Kubernetes quantities of GPUs: how a number is written so that the server keeps the text.

The server rewrites what is not canonical (``1000`` becomes ``1k``); a text that differs from what
it keeps would look like drift for ever. Source: apimachinery, ``resource.Quantity``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from enforcer.gateway.port import JsonValue

_DECIMAL: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FACTORS: Final = {
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(_DECIMAL)},
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(_BINARY)},
    "m": Decimal(1) / 1000,
}
_WRITTEN: Final = re.compile(r"([+-]?[0-9]+(?:\.[0-9]+)?)(?:[eE]([+-]?[0-9]{1,3})|([A-Za-z]*))")


def quantity(count: int) -> str:
    """Return a whole number as the server writes it: ``8``, ``1k``, ``1500``."""
    power = 0
    while count and count % 1000 == 0 and power < len(_DECIMAL) - 1:
        count, power = count // 1000, power + 1
    return f"{count}{_DECIMAL[power]}"


def number_text(value: JsonValue) -> str | None:
    """Return a quantity as a plain number, to compare and to show; None for nothing.

    What is no quantity comes back as it is.
    """
    if value is None or isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _WRITTEN.fullmatch(str(value))
    if found is None or (found[3] or "") not in _FACTORS:
        return str(value)
    number = Decimal(found[1]) * _FACTORS[found[3] or ""]
    if found[2] is not None:
        number *= Decimal(10) ** int(found[2])
    return f"{number.normalize():f}"
