"""What several floor tests lean on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from steward.catalogue import offers
from tests.support.floor_rooms import write_room


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undo what the front door of one test says about logs."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers = handlers
    logging.captureWarnings(capture=False)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a distribution that offers more commands, for the length of one test."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(write_room(folder)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    offers.cache_clear()
    yield folder
    offers.cache_clear()
