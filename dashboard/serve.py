"""Turns this process into Streamlit over ``app.py``: loopback only, no outside requests."""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NoReturn

from steward.addresses import base_url, claim_port
from steward.errors import AccessError, MissingPartError, UsageError
from steward.settings import Settings

APP: Final = Path(__file__).with_name("app.py")
PARTS: Final = ("streamlit", "altair")


def serve(settings: Settings) -> NoReturn:
    """Become the Streamlit process: signals and the exit code are its own.

    Raises:
        MissingPartError: Streamlit is not installed.
        AccessError: the address is reachable from elsewhere, and there is no sign-in yet.
        PortInUseError: another process listens there.
        SettingsError: this process may not listen there.
    """
    host = settings.dashboard.host
    require_parts()
    require_loopback(host)
    port = claim_port(host, settings.dashboard.port, purpose="the dashboard")
    sys.stderr.write(f"dashboard: {base_url(host, port)}\n")
    sys.stderr.flush()
    line = command(host=host, port=port)
    os.execve(line[0], line, environment(settings))  # noqa: S606  # our own interpreter and file


def command(*, host: str, port: int) -> list[str]:
    """Return the command line that serves the screens."""
    options = {
        "server.address": host,
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "server.enableXsrfProtection": "true",
        "browser.gatherUsageStats": "false",
        "browser.serverAddress": host,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "logger.hideWelcomeMessage": "true",
        "theme.base": "light",
        "theme.primaryColor": "#2563a8",
        "theme.textColor": "#1a2330",
        "theme.font": "sans-serif",
    }
    flags = [f"--{name}={value}" for name, value in options.items()]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags]


def environment(settings: Settings) -> Mapping[str, str]:
    """Return this process's environment with the settings that the screens need on top."""
    chosen = {
        "STEWARD_DATA_DIR": str(settings.data_dir),
        "STEWARD_CLUSTER": settings.cluster,
        "STEWARD_DASHBOARD_LANGUAGE": settings.dashboard.language,
        "STEWARD_WAREHOUSE_URL": settings.warehouse.url,
        "STEWARD_WAREHOUSE_TOKEN": settings.warehouse.token,
    }
    return os.environ | {name: value for name, value in chosen.items() if value is not None}


def require_parts() -> None:
    """Refuse to start without the libraries of the screens."""
    missing = [part for part in PARTS if importlib.util.find_spec(part) is None]
    if missing:
        raise MissingPartError(
            f"the dashboard needs {' and '.join(missing)}, not installed here",
            hint="install it with: pip install 'gpu-steward[dashboard]'",
        )


def require_loopback(host: str) -> None:
    """Refuse an address that other machines can reach: the screens have no sign-in."""
    if host == "localhost":
        return
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise UsageError(
            f"dashboard host {host!r} is not an address", hint="use 127.0.0.1, ::1 or localhost"
        ) from error
    if not is_loopback:
        raise AccessError(
            f"the dashboard has no sign-in and refuses to listen on {host}",
            hint="listen on 127.0.0.1 and put a proxy with sign-in, or an SSH tunnel, in front",
        )
