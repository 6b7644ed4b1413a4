"""Which targets to scrape: addresses as people write them become one URL each, once each.

Nothing here opens a connection; the order of the addresses does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import SplitResult, urlsplit

from steward.errors import UsageError

DEFAULT_PATH = "/metrics"
DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?\.?")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f<>\"\\^`{|}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeTarget:
    """One exporter to scrape, and what is known of it beside its address."""

    url: str
    """In the one spelling of ``target_url``."""
    node: str | None = None
    """The node the exporter stands on, where discovery knows it; it wins over labels."""
    pod: str | None = None
    """The exporter's own pod, which never holds a device."""


def target_urls(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return the URLs to scrape: one per distinct target, ascending.

    Args:
        addresses: ``host:port`` or a URL; without a path ``/metrics`` is meant.

    Raises:
        UsageError: one or more addresses are wrong; the message lists all of them.
    """
    urls: set[str] = set()
    faults: list[str] = []
    for address in addresses:
        try:
            urls.add(target_url(address))
        except UsageError as error:
            faults.append(error.message)
    if faults:
        raise UsageError("; ".join(faults), hint="write host:port or http://host:port/metrics")
    return tuple(sorted(urls))


def target_url(address: str) -> str:
    """Return the one spelling of this target's URL.

    Raises:
        UsageError: the address is not one of an HTTP server.
    """
    text = address.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        fault = _fault(text, parts)
    except ValueError as error:
        fault, parts = str(error), SplitResult("", "", "", "", "")
    if fault is not None:
        raise UsageError(
            f"bad target {_without_credentials(address)!r}: {fault}",
            hint="write host:port or http://host:port/metrics",
        )
    path = DEFAULT_PATH if parts.path in {"", "/"} else parts.path
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{_network_location(parts)}{path}{query}"


def _fault(text: str, parts: SplitResult) -> str | None:
    """Return why no target can have this address, or None where one can."""
    checks = {
        "it is empty": not text,
        "it contains a space or another character that no URL has": bool(_FORBIDDEN.search(text)),
        f"the scheme {parts.scheme!r} is neither http nor https": parts.scheme not in DEFAULT_PORTS,
        "credentials do not belong in an address, it is stored with every scrape": "@"
        in parts.netloc,
        "it has a fragment (#)": bool(parts.fragment),
    }
    fault = next((fault for fault, applies in checks.items() if applies), None)
    return fault if fault is not None else _host_fault(parts)


def _host_fault(parts: SplitResult) -> str | None:
    host = parts.hostname or ""
    if not host:
        return "it names no host"
    if not (_is_ipv6(host) if ":" in host else _HOST.fullmatch(host)):
        return f"{host!r} is not a host name or an IP address"
    if parts.port == 0 or parts.netloc.endswith(":"):
        return "its port is not between 1 and 65535"
    return None


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except AddressValueError:
        return False
    return True


def _network_location(parts: SplitResult) -> str:
    host = parts.hostname or ""
    written = f"[{host}]" if ":" in host else host
    is_default = parts.port in {None, DEFAULT_PORTS[parts.scheme]}
    return written if is_default else f"{written}:{parts.port}"


def _without_credentials(address: str) -> str:
    return re.sub(r"(^|//)[^/@]*@", r"\1***@", address)
