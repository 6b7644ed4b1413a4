"""The node agent stays small: it loads no engine, no frames, no HTTP or gRPC library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("pyarrow", "duckdb", "polars", "numpy", "sqlalchemy", "httpx", "anyio", "rich"),
    *("grpc", "google.protobuf", "prometheus_client", "http.client", "email", "asyncio", "ssl"),
)
"""What each would add: 5 MB and more, on every node of the cluster."""


@pytest.mark.parametrize(
    "module",
    [
        "collector.agent.cli",
        "collector.agent.serve",
        "collector.sources.podresources.unary",
    ],
)
def test_the_agent_loads_nothing_heavy(module: str) -> None:
    program = f"import sys, {module}\nprint('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_the_command_line_loads_not_even_the_driver() -> None:
    program = "import sys, collector.agent.cli\nprint('pynvml' in sys.modules)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"
