"""Addresses to listen on: whether one is free, and how this machine reaches it."""

from __future__ import annotations

import errno
import socket

from steward.errors import PortInUseError, SettingsError

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # recognised here, never bound by default
"""Addresses that mean "all of mine", with the one that reaches them from here."""


def claim_port(host: str, port: int, *, purpose: str) -> int:
    """Return the port, or a free one for 0, after making sure that nobody listens there.

    Args:
        host: the address to listen on.
        port: 0 takes any free port.
        purpose: who wants to listen, for the message: ``the warehouse``.

    Raises:
        PortInUseError: another process listens there.
        SettingsError: the host is no address of this machine, or the port needs privileges.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise _refusal(error, address=f"{host}:{port}", purpose=purpose) from error
        number: int = probe.getsockname()[1]
        return number


def _refusal(error: OSError, *, address: str, purpose: str) -> PortInUseError | SettingsError:
    if error.errno == errno.EADDRINUSE:
        return PortInUseError(
            f"{purpose} cannot listen on {address}: another process does",
            hint="stop that process, or choose another port (0 takes a free one)",
        )
    return SettingsError(
        f"{purpose} cannot listen on {address}: {error.strerror or error}",
        hint="name an address of this machine, and a port from 1024 on",
    )


def base_url(host: str, port: int) -> str:
    """Return the address under which this machine reaches a server listening there."""
    reachable = WILDCARDS.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
