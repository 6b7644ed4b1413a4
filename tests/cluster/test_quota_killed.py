"""Quota commands killed anywhere: nothing is lost or half written, and the next one finishes."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from sql.statedoor import STATE_FILE
from tests.cluster.test_quota_kueue import Desk, nominal, quota_text, with_queue
from tests.support.cluster_kueue import Kueue
from tests.support.cluster_namespace import Namespace

pytestmark = pytest.mark.slow
KILL_COUNT = 12
QUOTAS = ("4", "8")
START_S = (0.3, 2.5)
"""From the start of the command to its death: it takes about as long as the larger."""


def test_a_killed_command_is_finished_by_the_next_one(
    kueue: Kueue, kueue_namespace: Namespace, tmp_path: Path
) -> None:
    queue = with_queue(kueue, kueue_namespace)
    desk, path = Desk(tmp_path, kueue.cluster.kubeconfig), tmp_path / "quota.yaml"
    moments = random.Random(6)  # noqa: S311 - moments of a test, not secrets
    for number in range(KILL_COUNT):
        wanted = QUOTAS[(number + 1) % 2]
        path.write_text(quota_text(queue, guaranteed=int(wanted)))
        part = ("request", "settle", "--quota") if number % 3 == 2 else ("quota", "apply")
        kill(desk, (*part, str(path)), after_s=moments.uniform(*START_S))
        assert nominal(kueue, queue) in QUOTAS
        code, told = desk.run("quota", "apply", str(path))
        assert (code, nominal(kueue, queue)) == (0, wanted), told
    code, told = desk.run("audit", "verify")
    assert code == 0, told
    assert desk.run("quota", "plan", str(path)) == (0, "no quota differs\n")
    assert writes_without_a_row(tmp_path / "data") == []


def kill(desk: Desk, words: Sequence[str], *, after_s: float) -> None:
    """Start the command and end it as ``kill -9`` does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "steward", *words],
        env=desk.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after_s)
    process.kill()
    process.wait()


def writes_without_a_row(data_dir: Path) -> list[object]:
    """Return acts whose row lacks its word in the audit: both are stored as one."""
    with closing(sqlite3.connect(data_dir / STATE_FILE)) as state:
        acts = state.execute("select count(*) from action").fetchone()[0]
        words = state.execute("select count(*) from audit where action like 'act.%'").fetchone()[0]
    return [] if acts == words else [acts, words]
