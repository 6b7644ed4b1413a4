"""Amounts as Kubernetes writes them.

See https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from collector.sources.kubernetes.objects import Quantity

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<power>[+-]?\d{1,3}))?"
)
LARGEST: Final = 2**63 - 1
_FACTORS: Final = MappingProxyType(
    {
        "n": Decimal(10) ** -9,
        "u": Decimal(10) ** -6,
        "m": Decimal(10) ** -3,
        "k": Decimal(10) ** 3,
        "M": Decimal(10) ** 6,
        "G": Decimal(10) ** 9,
        "T": Decimal(10) ** 12,
        "P": Decimal(10) ** 15,
        "E": Decimal(10) ** 18,
        "Ki": Decimal(2) ** 10,
        "Mi": Decimal(2) ** 20,
        "Gi": Decimal(2) ** 30,
        "Ti": Decimal(2) ** 40,
        "Pi": Decimal(2) ** 50,
        "Ei": Decimal(2) ** 60,
    }
)


MOST: Final = 2**53
"""Pieces, bytes or thousandths of a core in one number; more is a way to write ``without end``, or
a mistake, and the sum of many such would fit into no column."""


@lru_cache(maxsize=4096)
def amount(quantity: Quantity | None) -> Decimal | None:
    """Return the amount in its base unit (cores, bytes, pieces).

    None where it says none, and where it is larger than Kubernetes itself can count.
    """
    if quantity is None:
        return None
    found = _FORM.fullmatch(str(quantity).strip())
    if found is None:
        return None
    factor = _FACTORS.get(found["suffix"] or "", Decimal(1))
    if found["power"]:
        factor = Decimal(10) ** int(found["power"])
    number = Decimal(found["number"]) * factor
    return number if abs(number) <= LARGEST else None


def whole(quantity: Quantity | None) -> int | None:
    """Return the amount as a whole number, rounded up as the scheduler does.

    An amount beyond ``MOST`` is none.
    """
    return _rounded(amount(quantity))


def milli(quantity: Quantity | None) -> int | None:
    """Return the amount in thousandths, rounded up; one beyond ``MOST`` is none."""
    found = amount(quantity)
    return None if found is None else _rounded(found * 1000)


def _rounded(number: Decimal | None) -> int | None:
    if number is None or abs(number) > MOST:
        return None
    return int(number.to_integral_value(rounding=ROUND_CEILING))
