"""How far an import came, and what it remembered there: so that a killed one goes on exactly.

What is remembered of a target decides which rows come next (an XID is an event only the first time
it is shown), so an hour read after a kill gives the same rows only with the same memory. The file
is an aid: without it an import begins anew and the warehouse recognises what it has.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from collector.backfill.scrapes import WaitingSample
from collector.backfill.series_labels import TargetKey
from collector.holdings import HoldingSource
from collector.normalize import NormalizeState
from collector.normalize.claims import DeviceClaims
from steward.errors import InputError

_FORM: Final = 1
"""Raised when what is written changes; another form is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What an import knows once an hour is stored."""

    identity: str
    from_at: datetime
    next_at: datetime
    """The first hour that is not stored."""
    last_batch_id: str | None = None
    """The last batch that the warehouse acknowledged, to see that it is still the same one."""
    first_samples_at: datetime | None = None
    """The begin of the first span that had samples."""
    states: dict[TargetKey, NormalizeState] = field(default_factory=dict)
    claims: DeviceClaims = field(default_factory=DeviceClaims)
    firsts: dict[str, tuple[TargetKey, int]] = field(default_factory=dict)
    waiting: dict[TargetKey, list[WaitingSample]] = field(default_factory=dict)
    jobs: list[tuple[str, str]] = field(default_factory=list)
    """By label name, the jobs whose targets have devices."""
    lifecycle: dict[str, bytes] = field(default_factory=dict)
    """What the lifecycle of the cluster's objects asked to remember."""
    allocations: dict[str, bytes] = field(default_factory=dict)
    """What the builder of allocation intervals asked to remember."""
    sources: dict[TargetKey, HoldingSource] = field(default_factory=dict)
    poll_s: float | None = None
    """The usual interval of scrapes; None before any was seen."""
    form: int = _FORM


_DECODER: Final = msgspec.msgpack.Decoder(Checkpoint)


def checkpoint_path(folder: Path, *, identity: str, from_at: datetime) -> Path:
    """Return where the checkpoint of this import is kept."""
    digest = sha256(f"{identity}\x1f{from_at.isoformat()}".encode()).hexdigest()[:16]
    return folder / "imports" / f"prometheus-{digest}.msgpack"


def read_checkpoint(path: Path) -> Checkpoint | None:
    """Return what was written there; None where nothing, or nothing of this form, can be read."""
    try:
        found = _DECODER.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.form == _FORM else None


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write it whole or not at all.

    Raises:
        InputError: the folder cannot be written.
    """
    states = {target: _without_caches(state) for target, state in checkpoint.states.items()}
    content = msgspec.msgpack.encode(replace(checkpoint, states=states))
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}",
            hint="free some space, or choose another folder with --data-dir; what is stored stays",
        ) from error


def _without_caches(state: NormalizeState) -> NormalizeState:
    """Return what decides later rows: who is who follows from the labels again."""
    return replace(state, identities={}, claims=None)
