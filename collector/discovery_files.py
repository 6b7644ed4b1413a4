"""Targets from files in Prometheus' ``file_sd`` format, read again when they change.

A file that is broken keeps its last good targets and says so; a file that is gone has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Final

from collector.discovery import ScrapeTarget
from collector.discovery_labels import SourceState, merged_targets, targets_of
from steward.errors import InputError, MissingPartError, StewardError
from steward.units import MIB_BYTES

YAML_ENDINGS: Final = frozenset({".yml", ".yaml"})
FILE_LIMIT_BYTES: Final = 64 * MIB_BYTES
_YAML_FAULTS: Final = (ValueError, RecursionError, LookupError, AttributeError, TypeError)
"""What the library raises besides its own, at dates, numbers and tags that are none."""


@dataclass(frozen=True, slots=True)
class _Stamp:
    """What changes when a file does, also when another is moved into its place."""

    modified_ns: int
    size_bytes: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """One file as it was last read."""

    stamp: _Stamp
    targets: tuple[ScrapeTarget, ...]
    error: StewardError | None


class FileDiscovery:
    """Targets of all files that match.

    Args:
        patterns: paths, with ``*``, ``?`` and ``**`` as in shells; ``.json``, ``.yml``, ``.yaml``.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        """Read nothing yet."""
        self._patterns = tuple(patterns)
        self._known: dict[Path, _Known] = {}

    def look(self) -> tuple[ScrapeTarget, ...]:
        """Return the targets of all files, reading those that changed since the last look."""
        known: dict[Path, _Known] = {}
        for path in sorted(set(self._paths())):
            stamp = _stamp(path)
            if stamp is not None:
                known[path] = self._read(path, stamp)
        self._known = known
        return merged_targets(one.targets for one in known.values())

    def states(self) -> tuple[SourceState, ...]:
        """Return how it goes with each file, and with patterns that no file matches."""
        found = tuple(_state(str(path), known) for path, known in self._known.items())
        unmatched = (
            pattern
            for pattern in self._patterns
            if not any(one in self._known for one in _matching(pattern))
        )
        return (*found, *(_nothing_there(pattern) for pattern in unmatched))

    def _paths(self) -> Iterator[Path]:
        for pattern in self._patterns:
            yield from _matching(pattern)

    def _read(self, path: Path, stamp: _Stamp) -> _Known:
        before = self._known.get(path)
        if before is not None and before.stamp == stamp:
            return before
        try:
            targets = targets_of(_document(path), source=str(path))
        except StewardError as error:
            last_good = () if before is None else before.targets
            return _Known(stamp=stamp, targets=last_good, error=error)
        return _Known(stamp=stamp, targets=targets, error=None)


def _matching(pattern: str) -> Iterator[Path]:
    expanded = str(Path(pattern).expanduser())
    return (Path(one) for one in glob(expanded, recursive=True))  # noqa: PTH207 - absolute patterns


def _stamp(path: Path) -> _Stamp | None:
    """Return the state of a file; None where it is none (any more)."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _Stamp(status.st_mtime_ns, status.st_size, status.st_ino) if path.is_file() else None


def _document(path: Path) -> object:
    """Return the decoded document.

    Raises:
        InputError: it cannot be read or decoded.
        MissingPartError: it is YAML and the library for that is not installed.
    """
    try:
        body = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", hint="check the file") from error
    if len(body) > FILE_LIMIT_BYTES:
        raise InputError(f"{path} is too large to be a list of targets", hint="check the file")
    if path.suffix == ".json":
        return _json(path, body)
    if path.suffix in YAML_ENDINGS:
        return _yaml(path, body)
    raise InputError(f"{path} is neither .json nor .yml", hint="name it after its format")


def _json(path: Path, body: bytes) -> object:
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _undecodable(path, "JSON", str(error)) from error
    return document


def _yaml(path: Path, body: bytes) -> object:
    try:
        import yaml  # noqa: PLC0415 - an optional part; JSON files work without
    except ImportError as error:
        raise MissingPartError(
            f"{path} is YAML, and the library for that is not installed",
            hint="install gpu-steward[kubernetes], or write the file as JSON",
        ) from error
    try:
        document: object = yaml.safe_load(body)
    except (yaml.YAMLError, *_YAML_FAULTS) as error:
        raise _undecodable(path, "YAML", " ".join(str(error).split())) from error
    return document


def _undecodable(path: Path, form: str, fault: str) -> InputError:
    return InputError(
        f"{path} is no {form}: {fault}", hint="mend the file; replace it whole, by a rename"
    )


def _state(source: str, known: _Known) -> SourceState:
    error = known.error
    return SourceState(
        source=source,
        target_count=len(known.targets),
        error=None if error is None else error.message,
        hint=None if error is None else error.hint,
    )


def _nothing_there(pattern: str) -> SourceState:
    return SourceState(
        source=pattern,
        target_count=0,
        error=f"no file matches {pattern}",
        hint="check the path; the collector looks again and again",
    )
