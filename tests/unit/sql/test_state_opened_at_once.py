"""A new state database that several open at the same moment: each migration is applied once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from sql import state
from sql.migrate import Migration, shipped_migrations
from sql.state import StateTarget, open_state


def test_a_migration_applied_by_somebody_else_meanwhile_is_not_applied_again(
    tmp_path: Path,
) -> None:
    opened = open_state(tmp_path)
    try:
        target = StateTarget(opened._engine, path=tmp_path)
        for step in shipped_migrations("state"):
            target.apply(step)
        assert [step.number for step in target.applied()] == [
            step.number for step in shipped_migrations("state")
        ]
    finally:
        opened.close()


def test_many_that_open_a_new_state_at_once_all_find_it_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 8
    together = threading.Barrier(count)
    found: list[tuple[str, ...]] = []
    failures: list[Exception] = []

    def late(_self: StateTarget) -> tuple[()]:
        """Find nothing applied, once all have looked: the worst moment."""
        together.wait(timeout=30)
        return ()

    def open_one() -> None:
        try:
            opened = open_state(tmp_path)
            found.append(opened.table_names)
            opened.close()
        except Exception as error:  # noqa: BLE001 - whatever a thread meets fails the test
            failures.append(error)

    monkeypatch.setattr(state.StateTarget, "applied", late)
    threads = [threading.Thread(target=open_one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set(found)) == 1
    assert len(found) == count


def test_a_migration_that_fails_leaves_nothing_of_itself(tmp_path: Path) -> None:
    opened = open_state(tmp_path)
    try:
        target = StateTarget(opened._engine, path=tmp_path)
        faulty = Migration(
            number=99, name="faulty", checksum="x", text="create table half (a);\nselect nothing;\n"
        )
        with pytest.raises(sa.exc.OperationalError):
            target.apply(faulty)
        assert "half" not in sa.inspect(opened._engine).get_table_names()
        assert 99 not in [step.number for step in target.applied()]
    finally:
        opened.close()
