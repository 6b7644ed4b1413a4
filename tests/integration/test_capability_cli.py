"""``steward capability``: the table, and what is recorded over it."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from analytics.capability import TIERS as KNOWN_TIERS
from analytics.capability_table import MODELS
from dashboard.reports.capability_cli import CAPABILITY, TIERS
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import UsageError
from steward.settings import load


def capability(folder: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    CAPABILITY.add_arguments(parser)
    context = Context(
        settings=load(flags={"data_dir": str(folder)}),
        clock=FixedClock(datetime(2026, 5, 1, tzinfo=UTC)),
    )
    return CAPABILITY.run(parser.parse_args(arguments), context)


def test_table_lists_every_model_with_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert capability(tmp_path, "list", "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(MODELS)
    assert all(row["source"] for row in rows)
    assert {row["gpu_model"]: row["tier"] for row in rows}["h100 sxm"] == "S"


def test_record_is_kept_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capability(tmp_path, "set", "--model", "G2", "--tier", "B", "--memory-gib", "24") == 0
    assert "G2 is of tier B" in capsys.readouterr().out
    assert capability(tmp_path, "list", "--recorded", "--format", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["gpu_model"], row["tier"], row["memory_gb"]) == ("G2", "B", 24.0)


def test_nothing_recorded_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capability(tmp_path, "list", "--recorded") == 0
    assert "nothing is recorded" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["0", "-1"])
def test_memory_must_be_a_size(tmp_path: Path, size: str) -> None:
    with pytest.raises(UsageError):
        capability(tmp_path, "set", "--model", "G2", "--tier", "B", "--memory-gib", size)


def test_flags_know_the_same_tiers() -> None:
    assert TIERS == KNOWN_TIERS
