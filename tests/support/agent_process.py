"""``steward agent`` as a process of its own, on NVIDIA's library without a GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.collector_process import PATIENCE_S, RunningSteward, environment

SERVING = re.compile(r"serving (?P<gpus>\d+) GPUs on (?P<url>http://\S+)/metrics")


def agent_environment(
    library: Path | None, scene: Path | None = None, **more: str
) -> dict[str, str]:
    """Return the environment of an agent that finds this library; None finds none."""
    added = {"LD_LIBRARY_PATH": "" if library is None else str(library.parent)}
    if scene is not None:
        added["NVMLSTUB_FILE"] = str(scene)
    kept = {name: text for name, text in environment().items() if not name.startswith("NVMLSTUB")}
    return kept | added | more


def samples(page: str, name: str) -> Mapping[str, float]:
    """Return one family's values by the text between the braces."""
    found = re.finditer(rf"^{name}(?:\{{(.*)\}})? (\S+)$", page, re.MULTILINE)
    return {each[1] or "": float(each[2]) for each in found}


@dataclass(slots=True)
class RunningAgent:
    """One agent that serves."""

    steward: RunningSteward
    url: str

    def page(self) -> str:
        """Return its metrics."""
        answer = httpx.get(f"{self.url}/metrics", trust_env=False)
        assert answer.status_code == httpx.codes.OK
        return answer.text

    def page_where(self, condition: Callable[[str], bool]) -> str:
        """Return the first page that the condition holds for."""
        pages: list[str] = []

        def is_found() -> bool:
            pages.append(self.page())
            return condition(pages[-1])

        self.steward.wait_for(is_found)
        return pages[-1]

    def samples(self, name: str) -> Mapping[str, float]:
        """Return one family's values by the text between the braces."""
        return samples(self.page(), name)

    @property
    def cycles(self) -> float:
        """Return how often it has read the node."""
        return self.samples("steward_agent_cycles_total")[""]

    def wait_for_cycles(self, count: int) -> None:
        """Return once so many more readings were made."""
        goal = self.cycles + count
        self.steward.wait_for(lambda: self.cycles >= goal)


@contextmanager
def running_agent(
    *flags: str, cwd: Path, env: Mapping[str, str], name: str = "agent"
) -> Iterator[RunningAgent]:
    """Run an agent on a free port for the length of the block."""
    log_path = cwd / f"{name}.log"
    with log_path.open("wb") as log_file:
        process = subprocess.Popen(
            [sys.executable, "-m", "steward", "agent", "--port", "0", "--node", "n1", *flags],
            cwd=cwd,
            env=dict(env),
            stdout=log_file,
            stderr=subprocess.STDOUT,
        )
    running = RunningSteward(process, log_path)
    try:
        running.wait_for(lambda: SERVING.search(running.log) is not None)
        found = SERVING.search(running.log)
        assert found is not None
        yield RunningAgent(running, found["url"])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=PATIENCE_S)


def failed_agent(
    *flags: str, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run an agent that must end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "steward", "agent", *flags],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
