"""What one vendor name means: the column, the unit, the scope and how series of it combine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from collector.normalize import units
from collector.normalize.dialects import DCGM, Dialect
from collector.normalize.units import Unit
from collector.tables import DEVICE_SAMPLE

_FIRST_MEASURE: Final = "busy_ratio"
_LAST_MEASURE: Final = "process_count"
_NAMES: Final = tuple(DEVICE_SAMPLE.names)
MEASURES: Final = _NAMES[_NAMES.index(_FIRST_MEASURE) : _NAMES.index(_LAST_MEASURE) + 1]
"""The measured columns of ``device_sample``, in their stored order."""
XID: Final = "xid"
"""Not a column: a change of this value is a row of ``device_event``."""


class Role(StrEnum):
    """What a family's series are."""

    MEASURE = "measure"
    """A value for ``column``."""
    COUNTER = "counter"
    """A count that grows: its growth between two scrapes gives a value for ``column``."""
    LAST_EVENT = "last_event"
    """The value is the code of the last event of kind ``column``; 0 is none."""
    EVENT_COUNT = "event_count"
    """How often the event of kind ``column`` happened whose code the label ``label`` tells."""
    IDENTITY = "identity"
    """Only the labels speak: of the device's facts, and of its holder where they name one."""
    ABSENCE = "absence"
    """Labels ``measure`` and ``reason``: a column of the device that could not be read."""
    PRESENCE = "presence"
    """1 while the device answers, 0 where it does not; the label ``reason`` says why."""
    PROCESS = "process"
    """One process uses the device; the label ``label`` tells its number."""
    PROCESS_MEMORY = "process_memory"
    """Memory of one process, whose number the label ``label`` tells."""
    PROCESS_RATIO = "process_ratio"
    """Multiprocessor share of one process, whose number the label ``label`` tells."""


class Combine(StrEnum):
    """How several series of one device become one value of a column."""

    ONE = "one"
    """They are copies: the first that is not null, or the device's own."""
    SUM = "sum"
    """They are parts: links, directions, containers. A part that failed makes the whole unknown."""
    MAX = "max"
    """They are like parts of which the highest counts: clocks of engines, stacks of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What one vendor name means."""

    name: str
    column: str
    """One of ``MEASURES``, or the kind of an event; empty where the role needs none."""
    unit: Unit
    is_board_wide: bool
    """One value per physical GPU, even where the exporter repeats it for each MIG instance."""
    may_be_percent: bool
    """Named a ratio, but read as percent where any value of the family is above 1."""
    index: int
    """The column's place among ``MEASURES``; -1 where it is none."""
    dialect: Dialect = DCGM
    role: Role = Role.MEASURE
    combine: Combine = Combine.ONE
    rank: int = 0
    """Of several names for one column the one with the lowest rank that has a value counts."""
    label: str | None = None
    """Where the role needs one: the label that tells a code or a process number."""
    reference: str | None = None
    """Of a counter: the name of the one that its growth is divided by; None: by the seconds."""
    is_doubtful: bool = False
    """Not the device's own measure but the nearest there is: marked ``low_trust``."""
    is_plain: bool = False
    """Each series is one device's value, and nothing else needs to be known."""


def metrics(
    column: str,
    *names: tuple[str, Unit],
    dialect: Dialect = DCGM,
    is_board_wide: bool = False,
    rank: int = 0,
    combine: Combine = Combine.ONE,
    is_doubtful: bool = False,
) -> dict[str, Metric]:
    """Return what each of these names means: one measured column, each in its own unit."""
    return {
        name: Metric(
            name=name,
            column=column,
            unit=unit,
            is_board_wide=is_board_wide,
            may_be_percent=unit is units.DEVICE_RATIO,
            index=MEASURES.index(column),
            dialect=dialect,
            combine=combine,
            rank=rank,
            is_doubtful=is_doubtful,
            is_plain=combine is Combine.ONE and rank == 0 and not is_doubtful,
        )
        for name, unit in names
    }


def profiling(column: str, *names: str) -> dict[str, Metric]:
    """Return names of profiling ratios, which hold for each instance."""
    return metrics(column, *((name, units.PROFILING_RATIO) for name in names))


def counters(
    column: str,
    *names: tuple[str, Unit],
    dialect: Dialect = DCGM,
    is_board_wide: bool = False,
    reference: str | None = None,
) -> dict[str, Metric]:
    """Return names of counters whose growth, added up, gives one measured column.

    Args:
        column: a rate, or a ratio where there is a reference; empty: only a reference itself.
        names: each with the unit of its counts (a rate) or of the quotient (a ratio).
        dialect: how their labels are spelled.
        is_board_wide: see ``Metric.is_board_wide``.
        reference: see ``Metric.reference``.
    """
    return {
        name: Metric(
            name=name,
            column=column,
            unit=unit,
            is_board_wide=is_board_wide,
            may_be_percent=False,
            index=MEASURES.index(column) if column else -1,
            dialect=dialect,
            role=Role.COUNTER,
            reference=reference,
        )
        for name, unit in names
    }


def told(
    role: Role,
    *names: tuple[str, Unit],
    dialect: Dialect = DCGM,
    kind: str = "",
    label: str | None = None,
) -> dict[str, Metric]:
    """Return what names mean that are no measure: events, processes, facts.

    Args:
        role: what their series are.
        names: each with the unit of its values.
        dialect: how their labels are spelled.
        kind: of an event.
        label: see ``Metric.label``.
    """
    return {
        name: Metric(
            name=name,
            column=kind,
            unit=unit,
            is_board_wide=role in (Role.LAST_EVENT, Role.EVENT_COUNT),
            may_be_percent=False,
            index=-1,
            dialect=dialect,
            role=role,
            label=label,
        )
        for name, unit in names
    }
