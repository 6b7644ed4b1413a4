"""Texts that change where no exporter changes them: by plan they give what in full they give.

Real texts are changed a byte, a value, a label or a line at a time between scrapes; the rows must
be those of a full reading, fit the warehouse's own tables, and end no interval before it began.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from collector.allocation.builder import AllocationBuilder
from collector.attribution import NoOwners
from collector.normalize import Planner
from collector.polling import Polling
from collector.reading import Reading, reading_of
from collector.scrape import Page
from collector.tables import rows_table
from sql.rows import fit
from sql.tables import TableShape
from sql.warehouse import open_embedded
from steward.ids import ClusterName
from tests.support.exposition_texts import NOON
from tests.support.planned_targets import EagerPlanner, NeverPlanned, Side, outcome

NUMBERS = (
    b"NaN",
    b"+Inf",
    b"-Inf",
    b"1e400",
    b"-1e400",
    b"1e-400",
    b"0x1p3",
    b"1_000",
    b"",
    b" ",
    b"1 1",
    b"1 -1",
    b"1 1764500000000",
    b"1 9223372036854775807",
    b"1 99999999999999999999",
    b'1 # {a="b"} 2',
    b"-1",
    b"-0",
    b"18446744073709551616",
    b"2147483648",
    b".5",
    b"5.",
    b"1e",
    b"\xd9\xa3",
    b"00012",
    b"++5",
    b"1\t2",
    b"1\r",
)
LABELS = (
    b"",
    b"x" * 3_000,
    b"\\n",
    b'\\"',
    b"\\x",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\x00",
    b"99999999999999999999",
    b"-1",
    b"2147483648",
    b"1e3",
    b"\xef\xbc\x91",
    b"GPU-",
    b'a"b',
    b'a",b="c',
    b"\xf4\x8f\xbf\xbf",
)
BYTES = bytes((0, 9, 10, 13, 32, 34, 35, 44, 45, 46, 48, 57, 61, 92, 101, 123, 125, 128, 255))
AGENT = b"""# TYPE steward_gpu_busy_ratio gauge
steward_gpu_info{uuid="GPU-1",gpu="0",node="n1",instance_id="",model="H100",minor="0"} 1
steward_gpu_up{uuid="GPU-1",gpu="0",node="n1",instance_id="",reason=""} 1
steward_gpu_busy_ratio{uuid="GPU-1",gpu="0",node="n1",instance_id=""} 0.5
steward_gpu_power_watts{uuid="GPU-1",gpu="0",node="n1",instance_id=""} 300
steward_gpu_last_xid{uuid="GPU-1",gpu="0",node="n1",instance_id=""} 31
steward_gpu_allocation_info{uuid="GPU-1",gpu="0",node="n1",instance_id="",replica="0",\
namespace="a",pod="p",container="c",resource="nvidia.com/gpu",claim="",source="podresources"} 1
steward_gpu_process_memory_used_bytes{uuid="GPU-1",gpu="0",node="n1",instance_id="",pid="12",\
process="py",pod_uid="u",container_id="x"} 1e9
"""


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, TableShape]:
    """Return the warehouse's own tables."""
    with closing(open_embedded(tmp_path_factory.mktemp("shapes"))) as warehouse:
        return dict(warehouse.shapes)


@pytest.fixture(scope="module")
def texts(test_data: Path) -> list[bytes]:
    """Return texts of all vendors, the agent's own among them."""
    saved = [path.read_bytes() for path in sorted((test_data / "exposition").glob("*.prom"))]
    return [*saved, AGENT, AGENT]


@pytest.mark.parametrize("seed", range(20))
def test_changed_texts_give_the_rows_of_a_full_reading(
    seed: int, texts: list[bytes], shapes: Mapping[str, TableShape]
) -> None:
    dice = random.Random(seed)  # noqa: S311 - repeatable test input
    planned, full = Side(dice.choice((Planner, EagerPlanner)), None), Side(NeverPlanned, None)
    holders = Holders(shapes)
    original = current = dice.choice(texts)
    after = timedelta(0)
    for _ in range(8):
        after += timedelta(seconds=dice.choice((15, 15, 15, 15, 0, -7_200, 18_000)))
        fate = dice.random()
        if fate < 0.5:
            current = changed(current, dice)
        page = Page(body=original if fate > 0.8 else current)
        one, other = (
            reading_of(side.targets[0], page, scraped_at=NOON + after, duration_s=0.5)
            for side in (planned, full)
        )
        told = outcome(one)
        assert plain(told) == plain(outcome(other)), page.body
        check_rows(told, shapes)
        holders.observe(one)


class Holders:
    """What the scrapes say of who holds what, as the collector takes it."""

    def __init__(self, shapes: Mapping[str, TableShape]) -> None:
        """Know nothing yet."""
        self._shapes = shapes
        self._polling = Polling()
        self._builder = AllocationBuilder(
            cluster=ClusterName("c1"), poll_s=15, owners=NoOwners(), memory={}
        )

    def observe(self, reading: Reading) -> None:
        """Take one reading; check the rows it leads to."""
        for poll in self._polling.polls(reading):
            for row in self._builder.observe(poll).rows:
                fit(rows_table("allocation", [row]), shape=self._shapes["allocation"])
                assert row["ended_at"] is None or row["ended_at"] >= row["started_at"]


def plain(told: Mapping[str, Any]) -> str:
    """Return all of it as text: not a number is one, too."""
    return repr(sorted(told.items()))


def check_rows(told: Mapping[str, Any], shapes: Mapping[str, TableShape]) -> None:
    """Every row fits its table, ratios are ratios, and numbers are finite."""
    for name, rows in told.items():
        if name not in shapes:
            continue
        fit(rows_table(name, rows), shape=shapes[name])
        for row in rows:
            numbers = {key: value for key, value in row.items() if isinstance(value, float)}
            assert all(map(math.isfinite, numbers.values())), row
            assert all(0 <= value <= 1 for key, value in numbers.items() if key.endswith("_ratio"))


def changed(text: bytes, dice: random.Random) -> bytes:
    """Return the text with one to three places changed."""
    lines = text.split(b"\n")
    for _ in range(dice.choice((1, 1, 1, 3))):
        place = dice.randrange(len(lines))
        change = dice.choice((_number, _label, _byte, _byte, _lines))
        change(lines, place, dice)
    ending = dice.random()
    if ending < 0.04:
        return b"\r\n".join(lines)
    whole = b"\n".join(lines)
    return whole[: dice.randrange(len(whole) + 1)] if ending < 0.08 else whole


def _number(lines: list[bytes], place: int, dice: random.Random) -> None:
    before, space, _ = lines[place].rpartition(b" ")
    lines[place] = before + space + dice.choice(NUMBERS)


def _label(lines: list[bytes], place: int, dice: random.Random) -> None:
    parts = lines[place].split(b'"')
    if len(parts) > 1:
        parts[dice.randrange(1, len(parts), 2)] = dice.choice(LABELS)
        lines[place] = b'"'.join(parts)


def _byte(lines: list[bytes], place: int, dice: random.Random) -> None:
    line = bytearray(lines[place])
    if not line:
        return
    at = dice.randrange(len(line))
    fate = dice.random()
    if fate < 0.6:
        line[at] = dice.choice((*BYTES, line[at] ^ 1, dice.randrange(256)))
    elif fate < 0.8:
        del line[at]
    else:
        line.insert(at, dice.randrange(256))
    lines[place] = bytes(line)


def _lines(lines: list[bytes], place: int, dice: random.Random) -> None:
    fate, other = dice.random(), dice.randrange(len(lines))
    if fate < 0.3:
        lines.insert(other, lines[place])
    elif fate < 0.6 and len(lines) > 1:
        lines.pop(place)
    elif fate < 0.8:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines[place] += b"\r"
