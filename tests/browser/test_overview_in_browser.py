"""The overview in a real browser: warehouse and screens as processes, nothing from outside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sql.access import remote_of
from sql.warehouse import open_embedded
from steward.settings import Settings
from tests.conftest import skip_aloud
from tests.support.report_rows import store_fleet

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_S = 60
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@dataclass
class Visit:
    """One open page with everything it asked for and complained about."""

    page: Page
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, address: str) -> None:
        """Note requests to other hosts, console errors and failed scripts."""
        self.page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((address, "data:", "blob:"))
                or request.url.startswith(address.replace("http", "ws"))
                else self.outside.append(request.url)
            ),
        )
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(is_done: Callable[[], bool], child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        assert child.poll() is None, f"{child.args!r} ended with {child.returncode}"
        assert time.monotonic() < deadline, f"{child.args!r} did not answer within {WAIT_S} s"
        time.sleep(0.05)


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "steward", *arguments, "--data-dir", str(folder)]
    with (folder / f"{arguments[0]}.log").open("wb") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(timeout=15)


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/_stcore/health", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def owns(folder: Path) -> bool:
    remote = remote_of(Settings(data_dir=folder))
    if remote is None:
        return False
    remote.close()
    return True


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of the screens, which ask a warehouse process for their rows."""
    folder = tmp_path_factory.mktemp("browser")
    with closing(open_embedded(folder)) as warehouse:
        store_fleet(warehouse)
    port = free_port()
    place = f"http://127.0.0.1:{port}"
    with running(folder, "warehouse", "--port", str(free_port())) as owner:
        until(lambda: owns(folder), owner)
        with running(folder, "dashboard", "--port", str(port)) as screens:
            until(lambda: answers(place), screens)
            yield place


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield the machine's own Chromium."""
    if not CHROMIUM.exists():
        skip_aloud(f"{CHROMIUM} is not installed")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def visit(browser: Browser, address: str, *, query: str = "", width: int = 1280) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": width, "height": 720})
    page.set_default_timeout(WAIT_S * 1000)
    visited = Visit(page)
    visited.watch(address)
    page.goto(f"{address}/{query}")
    try:
        yield visited
    finally:
        page.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_overview_shows_where_hours_went(
    browser: Browser, address: str, tmp_path: Path, *, width: int
) -> None:
    with visit(browser, address, width=width) as visited:
        page = visited.page
        page.get_by_text("Effective utilisation").first.wait_for()
        page.get_by_text("By tenant").first.wait_for()
        page.locator(
            "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg"
        ).first.wait_for()
        page.get_by_text("29.6 %").first.wait_for()
        picture = tmp_path / "overview.png"
        page.screenshot(path=picture)
        overflow_px = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert picture.stat().st_size > 10_000
        assert overflow_px <= 0
        assert visited.outside == []
        assert visited.errors == []


def test_a_filter_goes_into_the_address_and_back(browser: Browser, address: str) -> None:
    with visit(browser, address) as visited:
        page = visited.page
        page.get_by_text("96.0 GPU-h").first.wait_for()
        page.get_by_text("24 hours").first.click()
        page.wait_for_url("**/?last=24h")
    with visit(browser, address, query="?last=12h&lang=zh") as visited:
        visited.page.get_by_text("有效利用率").first.wait_for()
        expect(visited.page.get_by_text("48 GPU-h").first).to_be_visible()
        assert visited.outside == []
        assert visited.errors == []


def test_a_report_is_one_click_away(browser: Browser, address: str) -> None:
    with visit(browser, address) as visited:
        visited.page.get_by_text("All figures and rows").first.click()
        visited.page.get_by_text("Telemetry coverage").first.wait_for()
        assert visited.outside == []
