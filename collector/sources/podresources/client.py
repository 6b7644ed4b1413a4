"""Asks the kubelet over its unix socket; every way to fail has a name."""

from __future__ import annotations

import logging
import stat
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Final

from collector.sources.podresources.messages import (
    ContainerGrants,
    DeviceGrant,
    read_allocatable,
    read_list,
)
from collector.sources.podresources.wire import MessageError

log = logging.getLogger(__name__)

SERVICE: Final = "/v1.PodResourcesLister"


class Fault(StrEnum):
    """Why the kubelet's word is missing."""

    ABSENT = "absent"
    """There is no socket: no kubelet, or its folder is not mounted."""
    NO_PERMISSION = "no_permission"
    """The socket may not be used by this user."""
    TIMEOUT = "timeout"
    """The kubelet did not answer in time."""
    UNAVAILABLE = "unavailable"
    """Nothing listens on the socket: the kubelet is stopped."""
    REFUSED = "refused"
    """The kubelet answered with an error."""
    BROKEN = "broken"
    """What came back is no PodResources message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResources:
    """What the kubelet says of this node."""

    containers: tuple[ContainerGrants, ...]
    allocatable: tuple[DeviceGrant, ...] | None
    """Devices that could be given out, by resource; None where the kubelet does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why it said nothing."""

    fault: Fault
    message: str


class _Failed(Exception):  # noqa: N818 - carries a Failure out of the call, never leaves here
    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(fault=fault, message=message)


class PodResourcesClient:
    """One socket; nothing is loaded or opened before the socket is there.

    Args:
        socket: the kubelet's.
        timeout_s: for each of the two calls.
    """

    def __init__(self, socket: Path, *, timeout_s: float) -> None:
        """Open nothing yet."""
        self.socket = socket
        self._timeout_s = timeout_s

    def load(self) -> None:
        """Load what the first question needs, if there is a socket: that takes a while."""
        if self.socket.exists():
            import_module("collector.sources.podresources.unary")

    def read(self) -> PodResources | Failure:
        """Return what the kubelet says now, or why it says nothing."""
        try:
            self._check_socket()
            containers = read_list(self._ask("List"))
            return PodResources(containers=containers, allocatable=self._allocatable())
        except _Failed as failed:
            return failed.failure
        except MessageError as error:
            return Failure(fault=Fault.BROKEN, message=error.message)

    def _check_socket(self) -> None:
        """Tell apart that there is no socket and that it may not be used."""
        try:
            is_socket = stat.S_ISSOCK(self.socket.stat().st_mode)
        except PermissionError as error:
            raise _Failed(Fault.NO_PERMISSION, f"{self.socket} may not be seen") from error
        except OSError as error:
            raise _Failed(Fault.ABSENT, f"{self.socket}: {error.strerror}") from error
        if not is_socket:
            raise _Failed(Fault.ABSENT, f"{self.socket} is no socket")

    def _allocatable(self) -> tuple[DeviceGrant, ...] | None:
        """Return the devices of the node; kubelets before 1.23 do not tell by default."""
        try:
            return read_allocatable(self._ask("GetAllocatableResources"))
        except (_Failed, MessageError) as error:
            log.debug("the kubelet does not tell what it can give out: %s", error)
            return None

    def _ask(self, method: str) -> bytes:
        from collector.sources.podresources import (  # noqa: PLC0415 - 5 MB: only with a kubelet
            unary,
        )

        try:
            return unary.ask(self.socket, f"{SERVICE}/{method}", timeout_s=self._timeout_s)
        except TimeoutError as error:
            fault, why = Fault.TIMEOUT, f"no answer within {self._timeout_s:g} s"
            raise _Failed(fault, f"{method} on {self.socket}: {why}") from error
        except unary.StatusError as error:
            is_late = error.status == unary.DEADLINE_EXCEEDED
            fault = Fault.TIMEOUT if is_late else Fault.REFUSED
            raise _Failed(fault, f"{method} on {self.socket}: {error}") from error
        except unary.NotGrpcError as error:
            raise _Failed(Fault.BROKEN, f"{method} on {self.socket}: {error}") from error
        except PermissionError as error:
            raise _Failed(
                Fault.NO_PERMISSION, f"{self.socket} may not be used by this user"
            ) from error
        except OSError as error:
            raise _Failed(Fault.UNAVAILABLE, f"{self.socket}: {error.strerror}") from error
