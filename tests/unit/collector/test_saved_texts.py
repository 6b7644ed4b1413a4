"""Saved exporter texts: which files speak of the same exporter."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from collector.sources.saved_texts import read_saved_texts

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TEXT = 'DCGM_FI_DEV_POWER_USAGE{{gpu="0",UUID="GPU-{uuid}",Hostname="n1"}} 70\n'


def saved(folder: Path, *uuids: str) -> list[Path]:
    paths = [folder / str(place) / "metrics.txt" for place, _ in enumerate(uuids)]
    for path, uuid in zip(paths, uuids, strict=True):
        path.parent.mkdir()
        path.write_text(TEXT.format(uuid=uuid))
    return paths


def device_rows(paths: list[Path], *, target: str | None) -> int:
    batches = read_saved_texts(paths, at=NOON, target=target, cluster="c")
    return sum(batch.rows.num_rows for batch in batches if batch.table == "device")


def test_each_file_is_an_exporter_of_its_own_whatever_its_name(tmp_path: Path) -> None:
    assert device_rows(saved(tmp_path, "a", "a", "a"), target=None) == 3


def test_files_of_one_named_exporter_are_one_history(tmp_path: Path) -> None:
    assert device_rows(saved(tmp_path, "a", "a", "a"), target="n1:9400") == 1
