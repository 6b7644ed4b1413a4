"""What the test cluster starts ends with the tests, however they end, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster_processes import Programs, free_ports, wait_until

ROOT = Path(__file__).parents[2]
CHILD = """
import sys, time
from pathlib import Path
from tests.support.cluster_processes import Programs
programs = Programs(Path(sys.argv[1]))
try:
    stopped = programs.start("stopped", "sleep", "600")
    programs.stop("stopped")
    print(programs.start("one", "sleep", "600").process.pid)
    print(programs.start("two", "sh", "-c", "trap '' TERM; sleep 600").process.pid, flush=True)
    time.sleep(600)
finally:
    programs.stop_all()
"""


def is_running(pid: int) -> bool:
    """Whether a process lives; one that waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1][0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(signal.SIGINT, id="Ctrl-C"),
        pytest.param(signal.SIGKILL, id="killed without warning"),
    ],
)
def test_programs_end_with_the_tests(which: signal.Signals, tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "600"])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    with bystander, child:
        try:
            pids = [int(child.stdout.readline()) for _ in range(2)]
            assert all(is_running(pid) for pid in pids)
            child.send_signal(which)
            child.wait(timeout=20)
            wait_until(lambda: not any(map(is_running, pids)), what="both to end", patience_s=20)
            assert bystander.poll() is None
        finally:
            child.kill()
            bystander.kill()


def test_free_ports_differ_and_are_free() -> None:
    assert len(set(free_ports(50))) == 50


def test_a_program_that_ends_early_tells_its_code_and_last_words(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    try:
        failing = programs.start("failing", "sh", "-c", "echo last words; exit 7")
        with pytest.raises(Exception, match=r"(?s)failing ended with code 7; .*last words"):
            failing.wait_ready(lambda: False, patience_s=20)
    finally:
        programs.stop_all()
