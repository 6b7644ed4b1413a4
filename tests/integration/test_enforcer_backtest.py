"""``steward policy backtest`` on a stored fortnight: it prints and records what was planted."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path

import pytest

from enforcer.policies.cli import POLICY
from enforcer.policies.leave import shown_by
from sql.warehouse import open_embedded
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import UsageError
from steward.settings import Settings
from tests.support.enforcer_planted import (
    END,
    HELD_GPU_HOURS,
    RECLAIMABLE_GPU_HOURS,
    REGRETTED,
    TAKEN,
    planted,
    store,
)
from tests.support.enforcer_world import START

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
LADDER_GPU_HOURS = 5 * 4
"""Until the ladder of the shipped policy is climbed: each of five GPUs waits at most 4 hours."""
RATE_MICROS = 2_500_000
DEFAULT_LOOKS = ("--every", "60")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder with the fortnight and a price."""
    place = tmp_path_factory.mktemp("planted")
    with closing(open_embedded(place)) as warehouse:
        store(planted(), warehouse)
        warehouse.state_insert(
            "price",
            {
                "gpu_model": "H100",
                "amount_micros_per_gpu_hour": RATE_MICROS,
                "currency": "USD",
                "valid_from_at": "2026-01-01T00:00:00Z",
                "source": "test",
                "approver": "test",
            },
        )
    return place


def run(folder: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    POLICY.add_arguments(parser)
    context = Context(settings=Settings(data_dir=folder), clock=FixedClock(END))
    return POLICY.run(parser.parse_args(["backtest", *arguments]), context)


@pytest.fixture(scope="module")
def shown(folder: Path) -> dict[str, object]:
    """Return what the shipped policy shows, as a document."""
    target = folder / "shown.json"
    span = ("--from", START.isoformat(), "--to", END.isoformat())
    run(folder, "default", *span, *DEFAULT_LOOKS, "--format", "json", "--output", str(target))
    found: dict[str, object] = json.loads(target.read_text(encoding="utf-8"))
    return found


def figures(shown: dict[str, object]) -> dict[str, float]:
    total = shown["total"]
    assert isinstance(total, dict)
    return total


def test_the_reclaimed_share_is_the_one_planted(shown: dict[str, object]) -> None:
    total = figures(shown)
    missing = RECLAIMABLE_GPU_HOURS - total["recovered_gpu_hours"]
    assert 0 <= missing <= LADDER_GPU_HOURS
    assert total["held_gpu_hours"] == pytest.approx(HELD_GPU_HOURS, rel=0.01)
    assert total["coverage_ratio"] == pytest.approx(1, abs=0.01)


def test_who_is_taken_from_and_regretted_is_who_was_planted(shown: dict[str, object]) -> None:
    takings = shown["takings"]
    assert isinstance(takings, list)
    assert sorted(one["name"] for one in takings) == sorted(TAKEN)
    assert tuple(one["name"] for one in takings if one["regret"]["24h"]) == REGRETTED
    assert figures(shown)["regret"]["24h"] == {  # type: ignore[index]  # a document
        "regretted_count": len(REGRETTED),
        "known_count": len(TAKEN),
        "ratio": len(REGRETTED) / len(TAKEN),
    }


def test_each_makes_room_for_one_that_waits(shown: dict[str, object]) -> None:
    takings, queue = shown["takings"], shown["queue"]
    assert isinstance(takings, list)
    assert isinstance(queue, dict)
    served = {one["serves_workload_uid"] for one in takings}
    assert served == {"waits-0", "waits-1", "waits-2"}
    assert (queue["started_count"], queue["open_count"]) == (3, 3)


def test_money_is_the_price_of_the_hours(shown: dict[str, object]) -> None:
    total = figures(shown)
    money = total["recovered_money"]
    assert isinstance(money, dict)
    usd = total["recovered_gpu_hours"] * RATE_MICROS / 1_000_000
    assert float(money["USD"]) == pytest.approx(usd, abs=1e-5)
    assert total["unpriced_gpu_hours"] == 0


def test_the_result_is_recorded_and_keeps_the_policy_from_acting(
    folder: Path, shown: dict[str, object]
) -> None:
    assert shown
    with closing(open_embedded(folder)) as warehouse:
        rows = warehouse.state_rows("backtest_run")
    (row,) = [one for one in rows if json.loads(str(one["result_json"])) == shown]
    (read,) = shown_by([row])
    assert (row["policy"], row["policy_version"], row["action_count"]) == ("default", 0, 3)
    assert read.regret_ratio == pytest.approx(1 / 3, abs=1e-6)


def test_a_person_reads_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from_at = (END.replace(hour=0) - (END - START) / 7).isoformat()
    assert run(folder, "default", "--from", from_at, *DEFAULT_LOOKS, "--against", "default@0") == 0
    text = capsys.readouterr().out
    assert "policy default version 0, cluster c" in text
    assert "default version 0 beside default version 0" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(("default", "--cluster", "other"), "no cluster 'other'", id="cluster"),
        pytest.param(("default", "--every", "0"), "is no time", id="never"),
        pytest.param(("default", "--every", "90"), "does not see all", id="too seldom"),
        pytest.param(("default", "--from", "yesterday"), "ISO 8601", id="no instant"),
        pytest.param(
            ("default", "--from", "2026-05-10T00:00:00Z", "--to", "2026-05-09T00:00:00Z"),
            "ends before",
            id="backwards",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        run(folder, *arguments)


def test_of_an_empty_warehouse_nothing_can_be_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing is stored"):
        run(tmp_path, "default")
