"""``steward policy`` on a data folder: check, store, compare, give leave, take it back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from enforcer.policies.cli import POLICY
from enforcer.policies.model import Mode
from enforcer.policies.schema import schema_text
from enforcer.policies.shipped import default_policy, default_text
from enforcer.policies.store import Change, Policies, put, versions
from sql.access import open_warehouse
from sql.auditchain import ChainState, verified
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import InputError, UsageError, WarehouseError
from steward.parser import parse
from steward.ports import StateLog, StateValue
from steward.settings import Settings

NOON = datetime(2026, 6, 10, 12, tzinfo=UTC)
TEAM = """
policy: team
parent: default
rules:
  - name: training
    match: {workload_class: training, tenant: vision}
    idle: {window: 1h}
    min_runtime: 1h
    checkpoint_grace: 10m
    ladder:
      - {step: notify, after: 1h}
      - {step: lower_priority, after: 1h20m, lead: 15m}
      - {step: suspend, after: 2h, lead: 1h}
caps: {workloads_per_hour: 1, workloads_per_round: 1, workloads_per_tenant_per_hour: 1}
"""


class Desk:
    """Runs ``steward policy …`` on one folder."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        """Keep the folder, and what is printed."""
        self.folder = folder
        self.now = NOON
        self._capture = capture

    def run(self, *words: str) -> str:
        """Run the command and return what it prints."""
        args = parse(POLICY, list(words))
        assert args is not None
        assert POLICY.run(args, self.context()) == 0
        return self._capture.readouterr().out

    def context(self) -> Context:
        return Context(settings=Settings(data_dir=self.folder), clock=FixedClock(self.now))

    def file(self, text: str, name: str = "team.yaml") -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def put(self, text: str) -> str:
        return self.run("put", self.file(text), "--note", "try", "--author", "ada")

    def modes(self) -> dict[str, tuple[int, Mode]]:
        """Return version and mode of each policy that holds."""
        with open_warehouse(self.context().settings) as warehouse:
            found = Policies(warehouse).current(self.now)
        return {one.name: (one.version, one.mode) for one in found}

    def backtested(self, version: int, **values: int | str | None) -> None:
        """Record a backtest, of the policy ``team`` unless told."""
        row = {
            "policy": "team",
            "policy_version": version,
            "from_at": "2026-05-01T00:00:00Z",
            "until_at": "2026-06-01T00:00:00Z",
            "action_count": 10,
            "regret_24h_micros": 10_000,
            "coverage_micros": 950_000,
            "result_json": "{}",
            "author": "ada",
            **values,
        }
        with open_warehouse(self.context().settings) as warehouse:
            warehouse.state_insert("backtest_run", row)


@pytest.fixture(name="desk")
def a_desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


def test_the_shipped_policy_holds_until_one_of_its_name_is_stored(desk: Desk) -> None:
    assert desk.modes() == {"default": (0, Mode.OBSERVE)}
    assert desk.run("show", "default") == default_text()
    assert "shipped" in desk.run("list")
    assert desk.run("put", desk.file(default_text()), "--note", "ours") == (
        "policy default version 1 stored, mode observe\n"
    )
    assert desk.modes() == {"default": (1, Mode.OBSERVE)}


def test_the_shipped_policy_can_be_retired(desk: Desk) -> None:
    desk.run("retire", "default", "--note", "we write our own")
    assert desk.modes() == {}
    with pytest.raises(InputError, match="is retired"):
        desk.run("show", "default")


def test_the_shipped_policy_is_given_leave_by_a_backtest_of_its_own(desk: Desk) -> None:
    with pytest.raises(InputError, match="no backtest"):
        desk.run("mode", "default", "warn", "--note", "hope")
    desk.backtested(0, policy="default")
    desk.run("mode", "default", "warn", "--note", "shown")
    assert desk.modes() == {"default": (1, Mode.WARN)}
    changes = desk.run("diff", "default@0", "default").splitlines()
    assert changes == ['-mode: "observe"', '+mode: "warn"']


def test_every_version_is_kept_and_the_newest_holds(desk: Desk) -> None:
    desk.put(TEAM)
    desk.now += timedelta(hours=1)
    desk.put(TEAM.replace("min_runtime: 1h", "min_runtime: 2h"))
    assert desk.modes()["team"] == (2, Mode.OBSERVE)
    rows = json.loads(desk.run("list", "--all", "--format", "json"))
    assert [(row["policy"], row["version"], row["author"]) for row in rows] == [
        ("default", 0, "shipped"),
        ("team", 1, "ada"),
        ("team", 2, "ada"),
    ]
    assert desk.run("diff", "team@1", "team") == (
        '-rules[training].min_runtime: "1h"\n+rules[training].min_runtime: "2h"\n'
    )
    assert desk.run("diff", "team@2", "team") == "no difference\n"


def test_a_version_may_hold_from_later_on(desk: Desk) -> None:
    desk.put(TEAM)
    later = desk.file(TEAM.replace("min_runtime: 1h", "min_runtime: 2h"))
    desk.run("put", later, "--from", "2026-06-11T00:00:00+08:00", "--note", "from tomorrow")
    assert desk.modes()["team"][0] == 1
    desk.now = datetime(2026, 6, 10, 16, tzinfo=UTC)
    assert desk.modes()["team"][0] == 2


def test_versions_are_read_again_without_a_restart(desk: Desk) -> None:
    with open_warehouse(desk.context().settings) as warehouse:
        policies = Policies(warehouse)
        assert [one.name for one in policies.current(NOON)] == ["default"]
    desk.put(TEAM)
    with open_warehouse(desk.context().settings) as warehouse:
        again = Policies(warehouse)
        first = again.current(NOON)
        assert [one.name for one in first] == ["default", "team"]
        assert first[1].valid_from_at == NOON
        assert again.current(NOON)[1] is first[1]


def test_a_check_tells_all_faults_and_stores_nothing(desk: Desk) -> None:
    loose = TEAM.replace("min_runtime: 1h", "min_runtime: 1m").replace("after: 2h", "after: 3h")
    with pytest.raises(InputError) as told:
        desk.run("check", desk.file(loose))
    assert "refused for 2 faults" in str(told.value)
    assert "rules[0].min_runtime: 1m is shorter than the parent's 30m" in str(told.value)
    assert desk.run("check", desk.file(TEAM)).endswith("policy team, 1 rule, no fault\n")
    parent = desk.file(default_text(), "default.yaml")
    assert desk.run("check", desk.file(TEAM), "--parent", parent)
    assert "team" not in desk.modes()


def test_what_cannot_be_read_is_refused(desk: Desk) -> None:
    with pytest.raises(InputError, match="cannot read"):
        desk.run("check", str(desk.folder / "gone.yaml"))
    binary = desk.folder / "binary.yaml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot read"):
        desk.run("check", str(binary))


def test_a_file_that_enforces_is_not_stored_without_a_backtest(desk: Desk) -> None:
    with pytest.raises(InputError, match="no backtest of these rules"):
        desk.put(f"mode: enforce\n{TEAM}")
    assert desk.modes() == {"default": (0, Mode.OBSERVE)}


def test_a_policy_leaves_observe_once_a_backtest_shows_little_regret(desk: Desk) -> None:
    desk.put(TEAM)
    desk.backtested(1, regret_24h_micros=50_000)
    with pytest.raises(InputError, match=r"5.0% regret"):
        desk.run("mode", "team", "warn", "--note", "hope")
    desk.backtested(1, regret_24h_micros=49_999)
    desk.run("mode", "team", "warn", "--note", "shown")
    desk.run("mode", "team", "enforce", "--note", "shown")
    assert desk.modes()["team"] == (3, Mode.ENFORCE)
    desk.backtested(1, regret_24h_micros=1_000_000)
    desk.run("mode", "team", "observe", "--note", "leave is taken back in any case")
    assert desk.modes()["team"] == (4, Mode.OBSERVE)


def test_a_parent_stays_until_its_children_are_gone(desk: Desk) -> None:
    desk.put(TEAM)
    with pytest.raises(InputError, match="parent of team"):
        desk.run("retire", "default", "--note", "old")
    desk.run("retire", "team", "--note", "old")
    desk.run("retire", "default", "--note", "old")
    assert desk.modes() == {}


def test_every_change_is_in_the_audit(desk: Desk) -> None:
    desk.put(TEAM)
    desk.run("retire", "team", "--note", "enough", "--author", "bob")
    with open_warehouse(desk.context().settings) as warehouse:
        rows = warehouse.state_after("audit", 0)
    assert [(row["actor"], row["action"], row["subject_uid"]) for row in rows] == [
        ("ada", "policy_stored", "team"),
        ("bob", "policy_retired", "team"),
    ]
    assert verified(ChainState(), rows).fault is None


class Interrupted:
    """A state in which somebody else stores a version right after it was read."""

    def __init__(self, state: StateLog, change: Change) -> None:
        """Keep the state; ``change`` is the other's."""
        self._state = state
        self._change = change

    def state_rows(self, table: str) -> Sequence[Mapping[str, object]]:
        rows = self._state.state_rows(table)
        put(self._state, "team", document={"policy": "team"}, change=self._change)
        return rows

    def state_after(
        self, table: str, key: int, *, limit: int = 10
    ) -> Sequence[Mapping[str, object]]:
        return self._state.state_after(table, key, limit=limit)

    def state_append(
        self, rows: Sequence[tuple[str, Mapping[str, StateValue]]], *, seen: Mapping[str, int]
    ) -> Sequence[Mapping[str, object]] | None:
        return self._state.state_append(rows, seen=seen)


def test_two_who_store_at_one_moment_do_not_overwrite_each_other(desk: Desk) -> None:
    change = Change(author="ada", note="first", valid_from_at=NOON, now=NOON)
    with open_warehouse(desk.context().settings) as warehouse:
        with pytest.raises(WarehouseError, match="somebody else"):
            put(Interrupted(warehouse, change), "team", document={"policy": "team"}, change=change)
        assert [one.number for one in versions(warehouse)] == [1]


def test_the_schema_is_printed_and_written(desk: Desk) -> None:
    assert desk.run("schema") == schema_text()
    target = desk.folder / "schema.json"
    desk.run("schema", "--output", str(target))
    assert target.read_text(encoding="utf-8") == schema_text()


def test_a_policy_is_shown_so_that_it_can_be_stored_again(desk: Desk) -> None:
    desk.put(TEAM)
    for words in (
        ("show", "team"),
        ("show", "team", "--full"),
        ("show", "team", "--format", "json"),
    ):
        path = desk.file(desk.run(*words), "shown.yaml")
        assert desk.run("diff", "team", path) == "no difference\n"
    assert desk.run("diff", "default@0", "default") == "no difference\n"


def test_a_policy_that_is_not_there_is_named(desk: Desk) -> None:
    desk.put(TEAM)
    for which in ("gone", "team@9", "team@x", "default@4"):
        with pytest.raises(InputError, match=which.partition("@")[0]):
            desk.run("show", which)


def test_why_must_be_said(desk: Desk) -> None:
    with pytest.raises((UsageError, SystemExit)):
        desk.run("put", desk.file(TEAM))
    assert default_policy().version == 0
