"""What people write for money, rates, shares and instants, read exactly: never through a float."""

from __future__ import annotations

import getpass
import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

from steward.errors import UsageError
from steward.period import instant_from
from steward.units import CURRENCY_MICROS, PERCENT

CURRENCY: Final = re.compile(r"[A-Z]{3}")
LARGEST_MICROS: Final = 2**63 - 1
"""What an integer of the state holds."""
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
PERCENTS: Final = round(1 / PERCENT)


def exact(text: str, *, option: str) -> Fraction:
    """Return the decimal that a text writes.

    Raises:
        UsageError: it is no plain decimal, as ``2.50``.
    """
    written = text.strip()
    try:
        if _DECIMAL.fullmatch(written):
            return Fraction(Decimal(written))
    except InvalidOperation:
        pass  # more digits than a decimal may have
    raise UsageError(
        f"{option} {text!r} is no decimal number",
        hint=f"write digits with a point and no separators, for example {option} 2.50",
    )


def micros(text: str, *, option: str, least: int = 0) -> int:
    """Return an amount in whole millionths.

    Raises:
        UsageError: it is no decimal, finer than a millionth, below ``least`` millionths, or larger
            than the state can hold.
    """
    amount = exact(text, option=option) * CURRENCY_MICROS
    if amount.denominator != 1:
        raise UsageError(
            f"{option} {text} has more than six decimals",
            hint="round it to six: the price book keeps millionths",
        )
    if not least <= amount <= LARGEST_MICROS:
        floor = Fraction(least, CURRENCY_MICROS)
        raise UsageError(
            f"{option} {text} is out of range", hint=f"write a number of at least {floor}"
        )
    return int(amount)


def currency(text: str, *, option: str = "--currency") -> str:
    """Return the code of a currency.

    Raises:
        UsageError: it is no ISO 4217 code.
    """
    code = text.strip().upper()
    if CURRENCY.fullmatch(code):
        return code
    raise UsageError(
        f"{option} {text!r} is no currency", hint=f"use an ISO 4217 code, for example {option} USD"
    )


def span(
    from_at: str, until_at: str | None, *, options: tuple[str, str] = ("--from", "--until")
) -> tuple[str, str | None]:
    """Return both ends as the texts that the state keeps; None has no end.

    Raises:
        UsageError: an end is no instant with a zone, or the end is not after the start.
    """
    start = instant_from(from_at, option=options[0])
    end = None if until_at is None else instant_from(until_at, option=options[1])
    if end is not None and end <= start:
        raise UsageError(
            f"{options[1]} {until_at} is not after {options[0]} {from_at}",
            hint=f"swap them, or leave {options[1]} out for a price without an end",
        )
    return iso(start), None if end is None else iso(end)


def iso(at: datetime) -> str:
    """Return an instant in the spelling of the state."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def thresholds(text: str) -> str:
    """Return the percentages of ``50,80,100`` as the JSON list of shares that the state keeps.

    Raises:
        UsageError: one is no number above 0.
    """
    shares = [exact(one, option="--thresholds") / PERCENTS for one in text.split(",")]
    if any(one <= 0 for one in shares):
        raise UsageError(
            f"--thresholds {text} has one that is not above 0", hint="for example 50,80,100"
        )
    return f"[{', '.join(decimal_text(one) for one in sorted(set(shares)))}]"


def weights(text: str) -> dict[str, str]:
    """Return the weights of ``a=5,b=3`` by team, as decimal texts.

    Raises:
        UsageError: a part is no ``TEAM=WEIGHT`` with a weight of at least 0, or a team repeats.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        team, equals, weight = (each.strip() for each in part.partition("="))
        if not (team and equals) or team in found or exact(weight, option="--weights") < 0:
            raise UsageError(
                f"--weights {text!r}: {part!r} is no TEAM=WEIGHT of a team not named before",
                hint="for example --weights vision=5,speech=3",
            )
        found[team] = decimal_text(exact(weight, option="--weights"))
    return found


def decimal_text(value: Fraction, *, decimals: int = 12) -> str:
    """Return a share or weight as decimal text, cut after some decimals."""
    scaled = value.numerator * 10**decimals // value.denominator
    whole, rest = divmod(abs(scaled), 10**decimals)
    sign = "-" if scaled < 0 else ""
    return f"{sign}{whole}.{rest:0{decimals}d}".rstrip("0").rstrip(".")


def person(given: str | None) -> str:
    """Return who is recorded as having approved: who was named, else who runs the command."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
