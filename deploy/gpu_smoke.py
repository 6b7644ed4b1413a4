# ruff: noqa: INP001 - a script, not a package
"""Reads a real card through the node agent's source: every signal, and why others are absent.

``make gpu`` runs it. Where there is no GPU it says so and ends with 0: nothing was found wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from collector.sources.nvml.node import NvmlNode
from collector.sources.nvml.records import Device, Health, Measure, NodeReading, Readings
from steward.errors import SourceError

BETWEEN_S: Final = 1.0
"""Rates and profiling are averages between two readings."""
DEADLINE_S: Final = 10.0


def main() -> int:
    """Print a table of each GPU; return 1 where one of them could not be read."""
    node = NvmlNode(deadline_s=DEADLINE_S, proc_root=Path("/proc"))
    try:
        gpu_count = node.open()
    except SourceError as error:
        say(f"no GPU here: {error} ({error.hint})")
        return 0
    if gpu_count == 0:
        say("no GPU here: the driver lists none")
        return 0
    node.read()
    time.sleep(BETWEEN_S)
    began_s = time.monotonic()
    reading = node.read()
    took_s = time.monotonic() - began_s
    node.close()
    for line in report(reading):
        say(line)
    say(f"{gpu_count} GPUs read in {took_s * 1_000:.0f} ms")
    return 0 if all(each.health is Health.UP for each in reading.devices) else 1


def report(reading: NodeReading) -> Iterator[str]:
    """Yield the lines of the report: GPUs, their signals, instances and processes."""
    for device in reading.devices:
        yield f"GPU {device.index}: {device.health.name.lower()}"
        yield f"  {device.identity}"
        yield from signals(device.readings)
        for instance in device.instances:
            yield f"  instance {instance.instance_id}: {instance.profile} {instance.uuids}"
            yield from signals(instance.readings)
        for process in device.processes:
            yield f"  {process}"
        yield f"  XIDs {'watched' if is_watched(reading, device) else 'not reported'}"
    yield from (f"XID {each.xid} on {each.uuid}: {each.count}" for each in reading.xids)


def is_watched(reading: NodeReading, device: Device) -> bool:
    """Return whether the driver reports this GPU's XIDs."""
    return device.identity is not None and device.identity.uuid in reading.watched


def signals(readings: Readings) -> Iterator[str]:
    """Yield one line per signal: its value, or why there is none."""
    for measure in Measure:
        if measure in readings.values:
            yield f"    {measure:34}{number(readings.values[measure]):>22}"
        elif measure in readings.absences:
            yield f"    {measure:34}{f'({readings.absences[measure]})':>22}"


def number(value: float) -> str:
    """Return a number for people."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def say(line: str) -> None:
    """Print one line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
