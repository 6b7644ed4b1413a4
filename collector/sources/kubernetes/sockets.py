"""Connections whose sockets can be shut down from another thread.

A thread that waits for the next event of a watch sleeps in the kernel; shutting its socket down is
what wakes it at once when the collector ends.
"""

from __future__ import annotations

import socket
import threading
import weakref
from contextlib import suppress
from typing import Any, Final

import urllib3

KEEPALIVE_IDLE_S: Final = 30
KEEPALIVE_INTERVAL_S: Final = 10
KEEPALIVE_PROBES: Final = 3

KEEPALIVE_OPTIONS: Final = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (
            ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
            ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL_S),
            ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        )
        if hasattr(socket, name)
    ),
]
"""A peer that vanished without a word is noticed by the kernel within a minute."""


class OpenSockets:
    """The sockets of one pool."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Return whether ``shut_down`` was called."""
        return self._is_closed

    def add(self, opened: object) -> None:
        """Remember a socket; one that comes too late is shut down at once."""
        if not isinstance(opened, socket.socket):
            return
        with self._lock:
            self._sockets.add(opened)
            if self._is_closed:
                _shut_down(opened)

    def shut_down(self) -> None:
        """End every connection, now and from now on; threads that read from them wake."""
        with self._lock:
            self._is_closed = True
            for opened in list(self._sockets):
                _shut_down(opened)


def watch_sockets(pool: urllib3.PoolManager, sockets: OpenSockets) -> None:
    """Let every connection that the pool opens from now on be known to ``sockets``."""
    pools: dict[str, type[Any]] = pool.pool_classes_by_scheme
    pool.pool_classes_by_scheme = {
        scheme: type(
            kind.__name__, (kind,), {"ConnectionCls": _known_to(sockets, kind.ConnectionCls)}
        )
        for scheme, kind in pools.items()
    }


def _known_to(sockets: OpenSockets, kind: type[Any]) -> type[Any]:
    """Return the same kind of connection, directly or through a proxy, whose socket is known."""

    def connect(self: Any) -> None:  # noqa: ANN401 - any of the library's connections
        kind.connect(self)
        sockets.add(self.sock)

    return type(kind.__name__, (kind,), {"connect": connect})


def _shut_down(opened: socket.socket) -> None:
    """Shut the plain socket down: the TLS layer's own shutdown would pull it from its reader."""
    with suppress(OSError):
        socket.socket.shutdown(opened, socket.SHUT_RDWR)
