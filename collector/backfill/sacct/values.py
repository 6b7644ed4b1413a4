"""What the fields of sacct mean: times, trackable resources, states, job ids.

``Unknown``, ``None`` and blank are sacct's words for what has not happened or is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from collector.backfill.sacct.lines import Line
from steward.errors import UsageError
from steward.units import GPU_MILLI, MIB_BYTES

_NOTHING: Final = frozenset({"", "unknown", "none", "n/a", "(null)"})
_EARLIEST: Final = datetime(1990, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)
_STATE: Final = re.compile(r"(?P<word>[A-Z][A-Z_]*)\+?(?:\s+by\s+(?P<by>\S+))?")
_JOB_ID: Final = re.compile(
    r"(?P<job>[0-9]{1,18})(?:_(?P<task>[0-9]{1,9}|\[[^\]]*\]))?(?:\+(?P<component>[0-9]{1,9}))?"
    r"(?P<step>\.\S+)?"
)
_TASKS: Final = re.compile(r"\[(?P<ranges>[0-9,:-]+)(?:%[0-9]+)?\]")
_RANGE: Final = re.compile(
    r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})(?::(?P<by>[1-9][0-9]{0,8}))?)?"
)
_AMOUNT: Final = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,9})?)(?P<unit>[KMGTPE]?)[nc]?")
_UNIT_MIB: Final = {
    "K": 1 / 1024,
    "": 1,
    "M": 1,
    "G": 1024,
    "T": 1024**2,
    "P": 1024**3,
    "E": 1024**4,
}
_GPU: Final = "gres/gpu"
_LARGEST_TASKS: Final = 1_000_000
_LARGEST_COUNT: Final = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a job asked for or was given; None where sacct does not say."""

    gpu_count: int | None
    gpu_models: str | None
    """Types as Slurm names them, ``|`` between several."""
    cpu_milli: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobId:
    """Which job a line speaks of."""

    job: str
    tasks: tuple[str, ...] | None
    """Tasks of an array: one, or those that still wait together; None for no array."""
    component: str | None
    """Component of a heterogeneous job."""
    is_step: bool


def zone_named(name: str | None) -> tzinfo:
    """Return the time zone; UTC where none is named.

    Raises:
        UsageError: there is no such zone.
    """
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"--time-zone {name!r} is no time zone", hint="name one such as Europe/Berlin or UTC"
        ) from error


def is_nothing(text: str) -> bool:
    """Tell whether sacct says that there is no value."""
    return text.strip().lower() in _NOTHING


def instant(line: Line, column: str, zone: tzinfo) -> datetime | None:
    """Return the instant of a field; None where there is none.

    sacct prints local time without its zone (or, with ``SLURM_TIME_FORMAT=%s``, seconds since
    1970). Of an hour that the clocks go through twice, the first is meant.
    """
    text = line.text(column)
    if is_nothing(text):
        return None
    if text.isdecimal() and text.isascii():
        text = datetime.fromtimestamp(min(int(text[:20]), 2**33), UTC).isoformat()
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise line.fault(column, f"is no time: {text[:40]!r}") from error
    at = (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
    if not _EARLIEST <= at < _LATEST:
        raise line.fault(column, f"is no time of a job: {text[:40]!r}")
    return at


def state(line: Line) -> tuple[str, str | None]:
    """Return the state's word, and who cancelled where it says so."""
    text = line.text("State")
    found = _STATE.fullmatch(text)
    if found is None:
        raise line.fault("State", f"is no state of a job: {text[:40]!r}")
    by = found["by"]
    return found["word"], None if by is None else f"by {by}"


def job_id(line: Line) -> JobId:
    """Return which job, task, component and step a line speaks of."""
    text = line.text("JobID")
    found = _JOB_ID.fullmatch(text)
    if found is None:
        raise line.fault("JobID", f"is no job id: {text[:40]!r}")
    task = found["task"]
    tasks = None if task is None else (task,) if task.isdecimal() else _tasks(line, task)
    return JobId(
        job=found["job"], tasks=tasks, component=found["component"], is_step=bool(found["step"])
    )


def _tasks(line: Line, text: str) -> tuple[str, ...]:
    """Return the tasks of ``[1-4,7,10-20:5%2]``; as one where sacct cut the list short."""
    found = _TASKS.fullmatch(text)
    if found is None:
        if "..." in text:
            return (text,)
        raise line.fault("JobID", f"has no list of tasks: {text[:40]!r}")
    tasks: list[str] = []
    for piece in found["ranges"].split(","):
        part = _RANGE.fullmatch(piece)
        if part is None:
            raise line.fault("JobID", f"has no list of tasks: {text[:40]!r}")
        first = int(part["first"])
        numbers = range(first, int(part["last"] or first) + 1, int(part["by"] or 1))
        if len(tasks) + len(numbers) > _LARGEST_TASKS:
            raise line.fault("JobID", f"has more than {_LARGEST_TASKS:,} tasks")
        tasks.extend(map(str, numbers))
    return tuple(tasks)


def resources(line: Line, column: str) -> Resources | None:
    """Return what ``cpu=8,mem=64G,gres/gpu:a100=2,gres/gpu=2`` says; None where blank.

    Of GPUs the plain count is the total; where only typed counts are given they add up.
    """
    text = line.text(column)
    if is_nothing(text):
        return None
    amounts: dict[str, str] = {}
    for piece in text.split(","):
        name, assigned, amount = piece.partition("=")
        if not assigned:
            raise line.fault(column, f"is no list of resources: {text[:60]!r}")
        amounts[name.strip().lower()] = amount.strip()
    typed = {
        name.removeprefix(f"{_GPU}:"): _count(line, column, amount)
        for name, amount in amounts.items()
        if name.startswith(f"{_GPU}:")
    }
    plain = amounts.get(_GPU)
    cpu, memory = amounts.get("cpu"), amounts.get("mem")
    return Resources(
        gpu_count=sum(typed.values()) if plain is None else _count(line, column, plain),
        gpu_models="|".join(sorted(name for name, count in typed.items() if count)) or None,
        cpu_milli=None if cpu is None else _count(line, column, cpu) * GPU_MILLI,
        memory_bytes=None if memory is None else round(_mib(line, column, memory) * MIB_BYTES),
    )


def _count(line: Line, column: str, text: str) -> int:
    if not (text.isdecimal() and text.isascii()) or int(text[:20]) > _LARGEST_COUNT:
        raise line.fault(column, f"has a count that is none: {text[:40]!r}")
    return int(text)


def _mib(line: Line, column: str, text: str) -> float:
    """Return an amount with sacct's unit letter; memory without a letter is MiB."""
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise line.fault(column, f"has an amount that is no number: {text[:40]!r}")
    return float(found["number"]) * _UNIT_MIB[found["unit"]]


def whole_number(line: Line, column: str) -> int | None:
    """Return a whole number; None where there is none."""
    text = line.text(column)
    if is_nothing(text):
        return None
    if not (text.isdecimal() and text.isascii()) or int(text[:20]) > 2**63 - 1:
        raise line.fault(column, f"is no whole number: {text[:40]!r}")
    return int(text)
