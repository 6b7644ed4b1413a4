"""Failures of the wire, as the HTTP library raises them, in the collector's words."""

from __future__ import annotations

import ssl
from typing import Final, TypeVar

import msgspec
from urllib3.exceptions import (
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    SSLError,
    TimeoutError,  # noqa: A004 - the HTTP library's own, meant instead of the built-in one
)

from collector.sources.kubernetes.api_error import ApiError, ApiFault, Question

Answer = TypeVar("Answer")

_HINTS: Final = {
    ApiFault.REFUSED: "start the API server, or check the address in the kubeconfig",
    ApiFault.UNKNOWN_HOST: "check the address in the kubeconfig",
    ApiFault.UNREACHABLE: "check route and firewall, or the proxy",
    ApiFault.TLS: "check certificate-authority in the kubeconfig, and that the server's "
    "certificate has the name by which it is called",
    ApiFault.TIMEOUT: "look why the API server is slow, or what holds its answers up",
    ApiFault.BROKEN: "nothing to do if it is rare; else look at what proxies the API server",
    ApiFault.UNREADABLE: "check that the kubeconfig's server is a Kubernetes API server",
    ApiFault.TOO_LARGE: "look which objects of this kind are so large",
    ApiFault.CREDENTIALS: "try `kubectl --kubeconfig FILE get nodes`, and renew what it refuses",
    ApiFault.CLOSED: "nothing to do: the collector is ending",
}


def wire_error(fault: ApiFault, question: Question, what: str, *, server: str) -> ApiError:
    """Return the failure for a person: who was asked what, and what came instead."""
    return ApiError(f"{server} did not {question}: {what}", hint=_HINTS[fault], fault=fault)


def decoded(body: bytes, kind: type[Answer], *, question: Question, server: str) -> Answer:
    """Return an answer's document.

    Raises:
        ApiError: it is none of this kind.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        what = f"the answer is not what it should be: {error}"
        raise wire_error(ApiFault.UNREADABLE, question, what, server=server) from error


def fault_of(error: HTTPError) -> ApiFault:
    """Return the word for a failure of the HTTP library."""
    if isinstance(error, SSLError):
        return ApiFault.BROKEN if _is_cut_off(error) else ApiFault.TLS
    if isinstance(error.__cause__, ConnectionRefusedError):
        return ApiFault.REFUSED
    return next((fault for kind, fault in _FAULTS if isinstance(error, kind)), ApiFault.BROKEN)


def words_of(error: HTTPError) -> str:
    """Return what the machine says below the HTTP library, where it says anything."""
    return str(error.__cause__ or error) or type(error).__name__


def _is_cut_off(error: SSLError) -> bool:
    """Return whether the connection ended within TLS, which is no fault of certificates."""
    return isinstance(error.__cause__, (ssl.SSLEOFError, ssl.SSLZeroReturnError))


_FAULTS: Final = (
    (NameResolutionError, ApiFault.UNKNOWN_HOST),
    (NewConnectionError, ApiFault.UNREACHABLE),
    (TimeoutError, ApiFault.TIMEOUT),
    (ProtocolError, ApiFault.BROKEN),
)
