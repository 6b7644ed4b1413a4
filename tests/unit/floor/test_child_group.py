"""Children live and end together, whatever way the group ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from steward.addresses import claim_port
from steward.children import ChildGroup, Ended, Stopped, answers, shell_code
from steward.errors import UnreachableError
from tests.support.floor_children import wait_until

SLEEPER = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = (
    "import signal, pathlib, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "pathlib.Path(sys.argv[1]).touch(); signal.pause(); signal.pause()"
)
SERVER = (
    "import http.server, sys;"
    "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])),"
    " http.server.SimpleHTTPRequestHandler).serve_forever()"
)


def python(program: str, *arguments: str) -> list[str]:
    """Return the command that runs a program in this very Python."""
    return [sys.executable, "-c", program, *arguments]


def group(grace_s: float = 15.0) -> ChildGroup:
    """Return a group whose children get this process's environment."""
    return ChildGroup(environ=os.environ, grace_s=grace_s)


def is_alive(pid: int) -> bool:
    """Tell whether a process with that id runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", 137),
    ],
)
def test_run_returns_the_exit_code(program: str, code: int) -> None:
    with group() as children:
        assert children.run("step", python(program)) == code
        assert children.ended() is None


@pytest.mark.parametrize(("code", "shell"), [(0, 0), (1, 1), (-9, 137), (-15, 143)])
def test_codes_as_shells_count_them(code: int, shell: int) -> None:
    assert shell_code(code) == shell


def test_watch_names_the_child_that_ended_and_the_others_are_stopped(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    lasting = f"import os, pathlib; pathlib.Path({str(note)!r}).write_text(str(os.getpid()));"
    with group() as children:
        children.start("lasting", python(lasting + SLEEPER))
        wait_until(lambda: note.exists() and note.read_text(encoding="utf-8") != "")
        children.start("brief", python("import sys; sys.exit(5)"))
        assert children.watch() == Ended("brief", 5)
        assert is_alive(int(note.read_text(encoding="utf-8")))

    assert not is_alive(int(note.read_text(encoding="utf-8")))


def test_children_are_asked_in_reverse_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = (
        "import signal, sys, pathlib\n"
        "log, name = pathlib.Path(sys.argv[1]), sys.argv[2]\n"
        "def leave(*_):\n"
        "    log.open('a').write(name + '\\n')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "log.with_name(name).touch()\n"
        "signal.pause()\n"
    )
    with group() as children:
        for name in ("first", "second", "third"):
            children.start(name, python(program, str(log), name))
        wait_until(lambda: all((tmp_path / n).exists() for n in ("first", "second", "third")))

    assert log.read_text(encoding="utf-8").split() == ["third", "second", "first"]


def test_a_child_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with group(grace_s=0.2) as children:
        children.start("stubborn", python(STUBBORN, str(ready)))
        wait_until(ready.exists)

    assert children.ended() is None


def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = (
        "import pathlib, subprocess, sys, signal\n"
        f"grandchild = subprocess.Popen([sys.executable, '-c', {SLEEPER!r}],"
        " stdout=subprocess.PIPE)\n"
        "grandchild.stdout.readline()\n"
        f"pathlib.Path({str(note)!r}).write_text(str(grandchild.pid))\n"
        "signal.pause()\n"
    )
    with group() as children:
        children.start("parent", python(program))
        wait_until(lambda: note.exists() and note.read_text(encoding="utf-8") != "")

    wait_until(lambda: not is_alive(int(note.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_stops_the_group_and_is_given_back(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    with group() as children:
        children.start("lasting", python(SLEEPER))
        os.kill(os.getpid(), number)
        with pytest.raises(Stopped) as stopped:
            children.watch()

    assert stopped.value.exit_code == code
    assert children.ended() is None
    assert signal.getsignal(number) == before


def test_wait_healthy_returns_once_the_address_answers() -> None:
    port = claim_port("127.0.0.1", 0, purpose="a test")
    url = f"http://127.0.0.1:{port}/"
    with group() as children:
        assert not answers(url)
        children.start("server", python(SERVER, str(port)))
        assert children.wait_healthy("server", url, timeout_s=20) is None
        assert answers(url)
        assert not answers(f"{url}no-such-page")


def test_wait_healthy_returns_a_child_that_ended_instead() -> None:
    with group() as children:
        children.start("server", python("import sys; sys.exit(12)"))
        ended = children.wait_healthy("server", "http://127.0.0.1:9/", timeout_s=20)

    assert ended == Ended("server", 12)


def test_wait_healthy_gives_up_with_a_clear_error() -> None:
    port = claim_port("127.0.0.1", 0, purpose="a test")
    with group() as children:
        children.start("server", python(SLEEPER))
        with pytest.raises(UnreachableError, match=rf"server did not answer at .*:{port}/ within"):
            children.wait_healthy("server", f"http://127.0.0.1:{port}/", timeout_s=0.3)


def test_answers_is_not_fooled_by_what_speaks_no_http() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def speak() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1_024)
                peer.sendall(b"220 ready\r\n")

        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        assert not answers(f"http://127.0.0.1:{port}/")
        speaker.join(timeout=5)


def test_answers_takes_any_text_for_an_address() -> None:
    assert not answers("nonsense")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a dead parent")
def test_children_end_with_a_parent_that_was_killed() -> None:
    program = (
        "import os, sys\n"
        "from steward.children import ChildGroup\n"
        "with ChildGroup(environ=os.environ) as group:\n"
        f"    group.start('child', [sys.executable, '-c', {SLEEPER!r}])\n"
        "    print(next(iter(group._running.values())).pid, flush=True)\n"
        "    group.watch()\n"
    )
    with subprocess.Popen(python(program), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        first, second = parent.stdout.readline(), parent.stdout.readline()
        pid = int((first + second).replace("up", ""))
        assert is_alive(pid)
        parent.kill()

    wait_until(lambda: not is_alive(pid))
