"""What an import remembers comes back as it was, and what cannot be read costs only time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.backfill.checkpoint import (
    Checkpoint,
    checkpoint_path,
    read_checkpoint,
    write_checkpoint,
)
from collector.backfill.scrapes import PastScrape, WaitingSample
from collector.backfill.series_labels import TargetKey
from collector.backfill.telemetry import PastTelemetry
from collector.holdings import HoldingSource
from collector.sources.exposition import ExpositionParser
from steward.errors import InputError
from tests.support.backfill_exporters import mig_text, plain_text

NINE = datetime(2026, 5, 1, 9, tzinfo=UTC)
KEY = TargetKey("dcgm", "n1:9400")
EMPTY = Checkpoint(identity="i", from_at=NINE, next_at=NINE)


def telemetry_after(*texts: str, past: PastTelemetry | None = None) -> PastTelemetry:
    """Return the memory after scrapes of these texts, a minute apart."""
    past = past or PastTelemetry(cluster="c")
    parser = ExpositionParser()
    for number, text in enumerate(texts):
        scrape = PastScrape(
            target=KEY,
            at_ms=number * 60_000,
            health={"up": 1.0},
            samples=parser.parse(text).samples,
        )
        past.read(scrape, target_labels={"node": "n1", "pod": "exporter"})
    return past


@pytest.mark.parametrize("text", [plain_text(7), plain_text(13), mig_text(7)])
def test_memory_of_a_target_decides_the_same_after_a_restart(text: str, tmp_path: Path) -> None:
    before = telemetry_after(text)
    file = tmp_path / "imports" / "x.msgpack"
    write_checkpoint(file, replace(EMPTY, states=before.states, claims=before.claims))
    found = read_checkpoint(file)
    assert found is not None
    after = PastTelemetry(cluster="c", states=found.states, claims=found.claims)
    (state,) = after.states.values()
    assert (state.node, state.own_pod, state.claims) == ("n1", "exporter", after.claims)
    scrape = PastScrape(
        target=KEY,
        at_ms=900_000,
        health={"up": 1.0},
        samples=ExpositionParser().parse(text).samples,
    )
    rows, same = (each.read(scrape, target_labels={}).rows for each in (after, before))
    assert [(name, table.to_pylist()) for name, table in rows] == [
        (name, table.to_pylist()) for name, table in same
    ]
    assert "device" not in {name for name, _ in rows}


def test_everything_else_comes_back(tmp_path: Path) -> None:
    whole = replace(
        EMPTY,
        last_batch_id="b",
        first_samples_at=NINE,
        firsts={"http://n1": (KEY, 5)},
        waiting={KEY: [WaitingSample("busy", {"gpu": "0"}, 1.5, 7)]},
        jobs=[("job", "dcgm")],
        lifecycle={"pod/u": b"1"},
        allocations={"node/n": b"\x00"},
        sources={KEY: HoldingSource.EXPORTER_LABEL},
        poll_s=15.0,
    )
    file = tmp_path / "x.msgpack"
    write_checkpoint(file, whole)
    assert read_checkpoint(file) == whole


@pytest.mark.parametrize("content", [b"", b"\xc1", b"not msgpack", b"\x80"])
def test_what_cannot_be_read_is_no_checkpoint(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "x.msgpack"
    file.write_bytes(content)
    assert read_checkpoint(file) is None


def test_a_checkpoint_cut_short_or_of_another_form_is_none(tmp_path: Path) -> None:
    file = tmp_path / "x.msgpack"
    assert read_checkpoint(file) is None
    write_checkpoint(file, EMPTY)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    assert read_checkpoint(file) is None
    write_checkpoint(file, replace(EMPTY, form=EMPTY.form + 1))
    assert read_checkpoint(file) is None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "imports").write_text("a file where the folder should be")
    file = checkpoint_path(tmp_path, identity="i", from_at=NINE)
    with pytest.raises(InputError, match="cannot write") as told:
        write_checkpoint(file, EMPTY)
    assert "--data-dir" in told.value.hint


def test_other_imports_have_other_files(tmp_path: Path) -> None:
    names = {
        checkpoint_path(tmp_path, identity=identity, from_at=at)
        for identity in ("a", "b")
        for at in (NINE, NINE.replace(hour=8))
    }
    assert len(names) == 4
