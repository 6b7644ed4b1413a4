"""Where the screens may listen, and what the child process is told."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from dashboard import serve
from steward.errors import AccessError, MissingPartError, PortInUseError, UsageError
from steward.settings import DashboardSettings, Settings, WarehouseSettings
from steward.settings import load as load_settings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_allowed(host: str) -> None:
    serve.require_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "10.0.0.1"])  # noqa: S104  # refused
def test_without_sign_in_nobody_else_is_served(host: str) -> None:
    with pytest.raises(AccessError, match="no sign-in"):
        serve.require_loopback(host)


def test_a_host_must_be_an_address() -> None:
    with pytest.raises(UsageError, match="is not an address"):
        serve.require_loopback("dashboard.example")


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = Settings(data_dir=tmp_path, dashboard=DashboardSettings(port=port))
        with pytest.raises(PortInUseError, match=f"the dashboard .* 127.0.0.1:{port}"):
            serve.serve(settings)


def test_a_missing_part_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "PARTS", ("streamlit", "no_such_part"))
    with pytest.raises(MissingPartError, match="no_such_part") as caught:
        serve.require_parts()
    assert "gpu-steward[dashboard]" in caught.value.hint


def test_the_child_asks_nothing_of_the_outside() -> None:
    line = serve.command(host="127.0.0.1", port=8501)
    assert line[:4] == [sys.executable, "-m", "streamlit", "run"]
    assert Path(line[4]).is_file()
    assert {
        "--browser.gatherUsageStats=false",
        "--server.headless=true",
        "--server.address=127.0.0.1",
        "--server.port=8501",
        "--server.fileWatcherType=none",
    } <= set(line)


def test_the_child_reads_the_same_settings(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path,
        warehouse=WarehouseSettings(url="http://127.0.0.1:8420", token="a-token-of-some-length"),  # noqa: S106  # made up
        dashboard=DashboardSettings(language="zh"),
    )
    environ = {
        name: value
        for name, value in serve.environment(settings).items()
        if name.startswith("STEWARD_") and name != "STEWARD_TEST_DATA"
    }
    assert load_settings(environ=environ) == settings
