"""The folder of a demonstration: whether it is finished, and safe to build or to rebuild.

A card in the folder says that a demonstration built it; without one nothing is ever removed.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from steward.errors import OwnedElsewhereError, UsageError

CARD_FILE = "demo.json"
LOCK_FILE = "owner.lock"
"""Locked by the process that has the folder's warehouse open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCard:
    """What a demonstration was built from."""

    version: str
    day_count: int
    seed: int
    is_complete: bool


def read_card(folder: Path) -> DemoCard | None:
    """Return the folder's card; None where no demonstration built it, or the card is damaged."""
    try:
        return DemoCard(**json.loads((folder / CARD_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_card(folder: Path, card: DemoCard) -> None:
    """Write the card so that readers see all of it or nothing."""
    draft = folder / f".{CARD_FILE}"
    draft.write_text(json.dumps(asdict(card)) + "\n", encoding="utf-8")
    draft.replace(folder / CARD_FILE)


def clear(folder: Path) -> None:
    """Empty the folder of an earlier demonstration, or create it.

    Raises:
        UsageError: it holds something that no demonstration built.
        OwnedElsewhereError: a process has its warehouse open.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        return
    if not (folder / CARD_FILE).is_file():
        raise UsageError(
            f"{folder} is not empty, and no demonstration built it",
            hint="choose an empty folder with --data-dir; nothing was touched",
        )
    if is_open(folder):
        raise OwnedElsewhereError(
            f"a process has the demonstration in {folder} open",
            hint="stop it (an earlier `steward demo`?), or choose another folder with --data-dir",
        )
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def is_open(folder: Path) -> bool:
    """Tell whether a process has the folder's warehouse open."""
    try:
        with (folder / LOCK_FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
