"""Running the owner process: address, files, owner's card, server, and all of it taken down."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import uvicorn

from sql.limits import limits_of
from sql.metrics import ServerMetrics
from sql.ownership import OwnerCard, remove_card, write_card
from sql.server import Service, build_app
from sql.statedoor import StateDoor
from sql.tokens import Tokens, refuse_open_bind
from sql.warehouse import open_embedded
from steward.addresses import base_url
from steward.clock import Clock
from steward.errors import PortInUseError, SettingsError
from steward.settings import Settings, WarehouseSettings

BACKLOG_COUNT = 128
logger = logging.getLogger(__name__)


def serve(settings: Settings, *, clock: Clock) -> int:
    """Own the data directory and answer until SIGTERM (returns 0) or Ctrl-C.

    Raises:
        SettingsError: the address is reachable from elsewhere without any token.
        PortInUseError: the address is taken.
        OwnedElsewhereError: another process owns the directory.
        NewerSchemaError, WarehouseError: the files cannot be opened.
    """
    tokens = tokens_of(settings.warehouse)
    refuse_open_bind(settings.warehouse.host, tokens=tokens)
    with (
        contextlib.closing(listen(settings.warehouse.host, settings.warehouse.port)) as listener,
        open_service(settings, tokens=tokens, clock=clock) as service,
        _card(settings.data_dir, url=url_of(listener), clock=clock),
    ):
        logger.info("warehouse is ready", extra={"url": url_of(listener)})
        _run(uvicorn.Server(_config(service)), listener=listener)
    return 0


def tokens_of(settings: WarehouseSettings) -> Tokens:
    """Return the tokens that the settings list."""
    return Tokens(
        writer=settings.writer_tokens,
        reader=settings.reader_tokens,
        enforcer=settings.enforcer_tokens,
        admin=settings.admin_tokens,
    )


@contextlib.contextmanager
def open_service(settings: Settings, *, tokens: Tokens, clock: Clock) -> Iterator[Service]:
    """Open both databases for the length of a ``with`` block."""
    with (
        contextlib.closing(
            open_embedded(settings.data_dir, limits=limits_of(settings.warehouse))
        ) as warehouse,
        contextlib.closing(StateDoor(settings.data_dir)) as state,
    ):
        yield Service(
            warehouse=warehouse,
            state=state,
            tokens=tokens,
            metrics=ServerMetrics(settings.data_dir),
            clock=clock,
            data_dir=settings.data_dir,
            body_limit_bytes=settings.warehouse.body_limit_bytes,
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that holds the address.

    Raises:
        PortInUseError: someone else listens there.
        SettingsError: this machine has no such address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG_COUNT)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(
                f"{host}:{port} is in use", hint="stop what listens there, or choose another --port"
            ) from error
        raise SettingsError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint="set warehouse.host to an address of this machine",
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the address to ask."""
    host, port = listener.getsockname()[:2]
    return base_url(host, port)


@contextlib.contextmanager
def _card(data_dir: Path, *, url: str, clock: Clock) -> Iterator[None]:
    """Tell other commands where to ask, while the block lasts."""
    card = OwnerCard(pid=os.getpid(), url=url, started_at=clock.now().isoformat(timespec="seconds"))
    write_card(data_dir, card)
    try:
        yield
    finally:
        remove_card(data_dir, card)


def _config(service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        build_app(service),
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=10,
        timeout_keep_alive=75,
        server_header=False,
    )


def _run(server: uvicorn.Server, *, listener: socket.socket) -> None:
    """Serve until a signal; SIGTERM ends the block in order instead of killing the process."""
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with contextlib.suppress(_Stopped):
            server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)


class _Stopped(BaseException):
    """SIGTERM came."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _Stopped
