"""Texts and files made to break a reader."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.imports import stored_identities
from collector.sources import files
from collector.sources.saved_texts import read_saved_texts
from steward.errors import AccessError, InputError
from steward.ports import ArrowTable, Parameter

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HUGE = "9" * 30


@pytest.mark.parametrize(
    ("labels", "column"),
    [
        (f'gpu="{HUGE}"', "device_index"),
        (f'gpu="0",GPU_I_ID="{HUGE}",GPU_I_PROFILE="1g.10gb"', "instance_id"),
        (f'gpu="0",GPU_I_ID="{2**31}",GPU_I_PROFILE="1g.10gb"', "instance_id"),
        ('gpu="0",GPU_I_ID="²",GPU_I_PROFILE="1g.10gb"', "instance_id"),
        ('gpu="0",GPU_I_ID="-1",GPU_I_PROFILE="99999999999999999999g.1gb"', "instance_id"),
    ],
)
def test_a_number_that_fits_no_column_is_unknown(tmp_path: Path, labels: str, column: str) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text(f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-1",Hostname="n",{labels}}} 5\n')
    batches = read_saved_texts([path], at=NOON, target=None, cluster="c")
    (device,) = (batch.rows for batch in batches if batch.table == "device")
    assert device.column(column).to_pylist() == [None]


@pytest.mark.parametrize("content", [b"", b"\n \n", gzip.compress(b"")])
def test_an_empty_file_is_no_exposition(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "metrics.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"metrics\.txt is empty"):
        read_saved_texts([path], at=NOON, target=None, cluster="c")


@pytest.mark.parametrize("is_gzip", [False, True])
@pytest.mark.parametrize(("size_bytes", "is_read"), [(99, True), (100, True), (101, False)])
def test_a_file_is_read_up_to_the_limit(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_gzip: bool,
    size_bytes: int,
    is_read: bool,
) -> None:
    monkeypatch.setattr(files, "LIMIT_BYTES", 100)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"0" * size_bytes) if is_gzip else b"0" * size_bytes)
    if is_read:
        assert len(files.read_contents(path, "exporter text")) == size_bytes
        return
    with pytest.raises(InputError, match="bomb holds more than 100 bytes"):
        files.read_contents(path, "exporter text")


class WriterOnly:
    """A warehouse whose token may not ask."""

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Refuse."""
        raise AccessError(statement[:row_limit], hint="ask")

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Refuse."""
        raise AccessError("the token's role (writer) is not reader", hint=f"{name} {parameters}")


def test_a_token_that_may_only_write_is_told_what_it_lacks() -> None:
    with pytest.raises(AccessError, match=r"looks for earlier imports.*writer") as caught:
        stored_identities(WriterOnly(), source="s", label="l", cluster="c")
    assert "reader_tokens" in caught.value.hint
