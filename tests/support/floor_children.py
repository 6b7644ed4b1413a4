"""Small real programs that stand in for the commands a supervisor starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

COMMANDS = '''\
"""Acts as `python -m steward NAME ...`; servers answer 200 to everything."""
import http.server
import json
import os
import sys
from pathlib import Path

name, *arguments = sys.argv[1:]
folder = Path(os.environ["STEWARD_DATA_DIR"])
with (Path(__file__).parent / "started.jsonl").open("a") as log:
    keep = ("STEWARD_WAREHOUSE_URL", "STEWARD_WAREHOUSE_TOKEN", "STEWARD_DATA_DIR")
    told = {key: os.environ[key] for key in keep if key in os.environ}
    line = {"name": name, "arguments": arguments, "pid": os.getpid(), **told}
    print(json.dumps(line), file=log)
failing = os.environ.get("TEST_FAILING", "")
if name == failing:
    sys.exit(7)
if name == "import":
    (folder / "rows").write_text("built")
elif name == "report":
    print("health of", (folder / "rows").read_text(), flush=True)
elif name == "price" or (name == "ledger" and "--follow" not in arguments):
    pass
elif name in {"collect", "ledger"}:
    import signal
    signal.pause()
else:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    port = int(arguments[arguments.index("--port") + 1])
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()
'''


def write_commands(folder: Path) -> Path:
    """Write the program and return its path; it notes each start in ``started.jsonl`` beside it."""
    program = folder / "commands.py"
    program.write_text(COMMANDS, encoding="utf-8")
    return program


def wait_until(is_true: Callable[[], bool], *, within_s: float = 10.0) -> None:
    """Wait until the condition holds; fail where it does not in time."""
    pause = threading.Event()
    for _ in range(int(within_s / 0.02)):
        if is_true():
            return
        pause.wait(0.02)
    pytest.fail("the condition did not come true")
