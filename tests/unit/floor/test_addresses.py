"""Addresses: a taken port is told before anything starts."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from steward.addresses import base_url, claim_port
from steward.errors import PortInUseError, SettingsError


@pytest.fixture
def taken_port() -> Iterator[int]:
    """Listen on a free port for the length of one test."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_port_is_refused(taken_port: int) -> None:
    with pytest.raises(PortInUseError) as caught:
        claim_port("127.0.0.1", taken_port, purpose="the warehouse")

    assert caught.value.message == (
        f"the warehouse cannot listen on 127.0.0.1:{taken_port}: another process does"
    )
    assert caught.value.exit_code == 12


def test_zero_takes_a_free_one() -> None:
    port = claim_port("127.0.0.1", 0, purpose="the warehouse")

    assert 1_024 <= port <= 65_535
    assert claim_port("127.0.0.1", port, purpose="the warehouse") == port


@pytest.mark.parametrize("host", ["192.0.2.1", "host.invalid"])
def test_an_address_of_another_machine_is_refused(host: str) -> None:
    with pytest.raises(SettingsError, match=rf"the dashboard cannot listen on {host}:8501"):
        claim_port(host, 8501, purpose="the dashboard")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8420"),
        ("localhost", "http://localhost:8420"),
        ("0.0.0.0", "http://127.0.0.1:8420"),  # noqa: S104  # turned into a loopback address
        ("::", "http://[::1]:8420"),
        ("::1", "http://[::1]:8420"),
    ],
)
def test_how_this_machine_reaches_it(host: str, url: str) -> None:
    assert base_url(host, 8420) == url
