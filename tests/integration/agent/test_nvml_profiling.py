"""When two profiling samples may be compared, and when not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pynvml
import pytest

from collector.sources.nvml.calls import call
from collector.sources.nvml.driver import start, stop
from collector.sources.nvml.gpm import GpmReader
from collector.sources.nvml.records import Measure, Readings
from tests.support.nvml_stub import Stub


def sampled(reader: GpmReader, *, owner: str = "a", instance_id: int | None = None) -> Readings:
    readings = Readings()
    handle = call(pynvml.nvmlDeviceGetHandleByIndex, 0)
    reader.take(handle, owner=owner, instance_id=instance_id, into=readings)
    return readings


@pytest.fixture
def reader(stub: Stub) -> Iterator[GpmReader]:
    """Yield a reader whose last sample lies 200 ms back."""
    stub.play("mig")
    start()
    made = GpmReader()
    sampled(made)
    age(made, None, by_s=0.2)
    time.sleep(0.11)  # the driver itself refuses samples less than 100 ms apart
    yield made
    stop()


def age(reader: GpmReader, instance_id: int | None, *, by_s: float) -> None:
    """Make the last sample older than it is."""
    known = reader._before[instance_id]
    reader._before[instance_id] = replace(known, taken_s=known.taken_s - by_s)


def test_the_second_sample_gives_a_row(reader: GpmReader) -> None:
    assert sampled(reader).values[Measure.SM_ACTIVE] == 0.64


@pytest.mark.parametrize(
    ("by_s", "has_row"),
    [
        pytest.param(598.0, True, id="just inside ten minutes"),
        pytest.param(600.1, False, id="past them"),
    ],
)
def test_a_gap(reader: GpmReader, by_s: float, *, has_row: bool) -> None:
    age(reader, None, by_s=by_s)
    assert (Measure.SM_ACTIVE in sampled(reader).values) == has_row


def test_samples_too_close_leave_the_first_in_place(reader: GpmReader) -> None:
    sampled(reader)
    before = reader._before[None]
    assert sampled(reader).values == {}
    assert reader._before[None] is before


def test_an_instance_that_was_made_anew(reader: GpmReader) -> None:
    sampled(reader, owner="MIG-1", instance_id=7)
    age(reader, 7, by_s=0.2)
    assert sampled(reader, owner="MIG-2", instance_id=7).values == {}


def test_an_instance_that_is_gone_is_forgotten(reader: GpmReader) -> None:
    sampled(reader, owner="MIG-1", instance_id=7)
    reader.keep_only({8})
    age(reader, None, by_s=0.0)
    assert set(reader._before) == {None}


def test_buffers_are_used_again(reader: GpmReader) -> None:
    for _ in range(3):
        sampled(reader)
        age(reader, None, by_s=0.2)
    assert len(reader._spare) == 1
