"""The answers of Prometheus's HTTP API as typed records, decoded without a detour over dicts.

Source of the format: the HTTP API as documented by Prometheus, version 1; Thanos, Mimir and
VictoriaMetrics answer alike.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

Second = Annotated[float, msgspec.Meta(ge=-62_135_596_800, lt=253_402_300_800)]
"""Seconds since 1970 with milliseconds, in the years 1 to 9999."""
Number = Annotated[
    str, msgspec.Meta(pattern=r"^([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?Inf|NaN)$")
]
"""A value as text: ``"1"``, ``"+Inf"``, ``"NaN"``."""
Instant = tuple[Second, Number]


class RawSeries(msgspec.Struct, frozen=True, gc=False):
    """One series of a range selector: its labels, its name among them, and its samples in order."""

    metric: dict[str, str]
    values: list[Instant] = []


class InstantValue(msgspec.Struct, frozen=True, gc=False):
    """One series of an instant vector."""

    metric: dict[str, str]
    value: Instant


class _MatrixData(msgspec.Struct, frozen=True, rename={"result_type": "resultType"}):
    result_type: str
    result: list[RawSeries]


class _VectorData(msgspec.Struct, frozen=True, rename={"result_type": "resultType"}):
    result_type: str
    result: list[InstantValue]


class MatrixAnswer(msgspec.Struct, frozen=True):
    """What a range selector is answered with."""

    status: str
    data: _MatrixData


class VectorAnswer(msgspec.Struct, frozen=True):
    """What an instant query is answered with."""

    status: str
    data: _VectorData


class NamesAnswer(msgspec.Struct, frozen=True):
    """What a question for label values is answered with."""

    status: str
    data: list[str]


class ActiveTarget(msgspec.Struct, frozen=True, rename={"scrape_url": "scrapeUrl"}):
    """A target that the server scrapes now."""

    labels: dict[str, str]
    scrape_url: str = ""


class _TargetsData(msgspec.Struct, frozen=True, rename={"active": "activeTargets"}):
    active: list[ActiveTarget] = []


class TargetsAnswer(msgspec.Struct, frozen=True):
    """What a question for targets is answered with."""

    status: str
    data: _TargetsData


class Fault(msgspec.Struct, frozen=True, rename={"kind": "errorType", "text": "error"}):
    """What went wrong, in the server's words."""

    status: str = ""
    kind: str = ""
    text: str = ""


MATRIX: Final = msgspec.json.Decoder(MatrixAnswer)
VECTOR: Final = msgspec.json.Decoder(VectorAnswer)
NAMES: Final = msgspec.json.Decoder(NamesAnswer)
TARGETS: Final = msgspec.json.Decoder(TargetsAnswer)
FAULT: Final = msgspec.json.Decoder(Fault)


def fault_of(body: bytes) -> Fault | None:
    """Return what a server says went wrong; None where the body is no answer of this API."""
    try:
        return FAULT.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
