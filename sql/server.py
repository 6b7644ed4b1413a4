"""The warehouse over HTTP: routes only. What they do is done by the embedded warehouse.

DuckDB works in threads: a few for appends and a few for questions, so that neither starves the
other nor the event loop.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from sql import wire
from sql.backup import take_backup
from sql.catalogue import named_queries
from sql.engine import READER_COUNT
from sql.metrics import ServerMetrics
from sql.sandbox import is_truncated
from sql.stateappend import appending, role_for, role_of
from sql.statedoor import STATE_ROW_LIMIT, StateDoor
from sql.tokens import Role, Tokens
from sql.warehouse import EmbeddedWarehouse
from steward.clock import Clock
from steward.errors import InputError, QueryError, StewardError
from steward.ids import BatchId
from steward.ports import Parameter
from steward.version import __version__

APPEND_THREADS: Final = 4
BATCH_HEADER: Final = "steward-batch-id"
TRUNCATED_HEADER: Final = "Steward-Truncated"
MAX_BATCH_ID_LENGTH: Final = 200
CLIENT_GONE_STATUS: Final = 499
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_KEY: Final = re.compile(r"[0-9]{1,18}")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the routes work on."""

    warehouse: EmbeddedWarehouse
    state: StateDoor
    tokens: Tokens
    metrics: ServerMetrics
    clock: Clock
    data_dir: Path
    body_limit_bytes: int


def build_app(service: Service) -> Starlette:
    """Return the ASGI application."""
    routes = Routes(service)
    return Starlette(
        routes=[
            Route("/v1/append/{table}", routes.append, methods=["POST"]),
            Route("/v1/query/{name}", routes.query, methods=["POST"]),
            Route("/v1/sql", routes.sql, methods=["POST"]),
            Route("/v1/tables", routes.tables, methods=["GET"]),
            Route("/v1/state", routes.state_append, methods=["POST"]),
            Route("/v1/state/{table}", routes.state_rows, methods=["GET"]),
            Route("/v1/state/{table}", routes.state_insert, methods=["POST"]),
            Route("/v1/admin/backup", routes.backup, methods=["POST"]),
            Route("/health", routes.health, methods=["GET"]),
            Route("/ready", routes.ready, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
        ],
        exception_handlers={
            StewardError: routes.on_failure,
            HTTPException: routes.on_unknown_route,
            ClientDisconnect: routes.on_departure,
            Exception: routes.on_fault,
        },
    )


class Routes:
    """One method per route."""

    def __init__(self, service: Service) -> None:
        """Keep the service and make the thread pools' limits."""
        self._service = service
        self._append_threads = anyio.CapacityLimiter(APPEND_THREADS)
        self._query_threads = anyio.CapacityLimiter(READER_COUNT)
        self._other_threads = anyio.CapacityLimiter(2)

    async def append(self, request: Request) -> Response:
        """Store a batch of rows, Arrow or JSON."""
        self._admit(request, needs=Role.WRITER)
        table = request.path_params["table"]
        batch_id = _batch_id(request)
        body = await self._body(request)
        is_json = request.headers.get("content-type", "").startswith(wire.JSON)

        def store() -> Response:
            rows = wire.rows_from_json(body) if is_json else wire.from_arrow(body)
            receipt = self._service.warehouse.append(table, rows, batch_id=batch_id)
            self._service.metrics.count_receipt(receipt)
            return _json(
                {
                    "batch_id": receipt.batch_id,
                    "table": receipt.table,
                    "row_count": receipt.row_count,
                    "is_repeat": receipt.is_repeat,
                }
            )

        return await self._in_thread(store, kind="append", limiter=self._append_threads)

    async def query(self, request: Request) -> Response:
        """Answer a named query."""
        self._admit(request, needs=Role.READER)
        name = request.path_params["name"]
        parameters = _parameters(await self._body(request))
        kind = wire.accepted(request.headers.get("accept"))

        def answer() -> Response:
            return _table(self._service.warehouse, kind, name=name, parameters=parameters)

        return await self._in_thread(answer, kind="query", limiter=self._query_threads)

    async def sql(self, request: Request) -> Response:
        """Answer one read-only statement."""
        self._admit(request, needs=Role.READER)
        statement, row_limit = _statement(await self._body(request))
        kind = wire.accepted(request.headers.get("accept"))

        def answer() -> Response:
            rows = self._service.warehouse.sql(statement, row_limit=row_limit)
            headers = {TRUNCATED_HEADER: "true"} if is_truncated(rows) else {}
            return Response(wire.ENCODERS[kind](rows), media_type=kind, headers=headers)

        return await self._in_thread(answer, kind="sql", limiter=self._query_threads)

    async def tables(self, request: Request) -> Response:
        """List the tables with their columns, the named queries and the state tables."""
        self._admit(request, needs=Role.READER)
        return await self._in_thread(
            lambda: _json(describe(self._service)), kind="state", limiter=self._other_threads
        )

    async def state_rows(self, request: Request) -> Response:
        """List the newest rows of a state table, or with ``after`` the oldest beyond a key."""
        self._admit(request, needs=Role.READER)
        table = request.path_params["table"]
        limit, after = _limit(request), _after(request)

        def answer() -> Response:
            state = self._service.state.get()
            if after is None:
                rows = state.rows(table, limit=limit)
            else:
                rows = state.rows_after(table, after, limit=limit)
            return _json({"rows": rows, "row_count": len(rows)})

        return await self._in_thread(answer, kind="state", limiter=self._other_threads)

    async def state_insert(self, request: Request) -> Response:
        """Insert one row into a state table."""
        table = request.path_params["table"]
        self._admit(request, needs=role_for([table]))
        row = wire.json_from(await self._body(request))
        if not isinstance(row, dict):
            raise InputError("the body is no row", hint='send {"column": value, …}')
        self._admit(request, needs=role_of([(table, row)]))

        def store() -> Response:
            return _json({"row": self._service.state.get().insert(table, row)}, status=201)

        return await self._in_thread(store, kind="state", limiter=self._other_threads)

    async def state_append(self, request: Request) -> Response:
        """Insert rows into several state tables, all or none."""
        self._admit(request, needs=Role.ENFORCER)
        rows, seen = appending(wire.json_from(await self._body(request)))
        self._admit(request, needs=role_of(rows))

        def store() -> Response:
            stored = self._service.state.get().append(rows, seen=seen)
            return _json({"rows": stored}, status=200 if stored is None else 201)

        return await self._in_thread(store, kind="state", limiter=self._other_threads)

    async def backup(self, request: Request) -> Response:
        """Write a backup into a new folder on the server's machine."""
        self._admit(request, needs=Role.ADMIN)
        content = wire.json_from(await self._body(request))
        target = content.get("destination") if isinstance(content, dict) else None
        if not isinstance(target, str) or not Path(target).is_absolute():
            raise InputError(
                "the backup's destination is no absolute path", hint='send {"destination": "/…"}'
            )

        def take() -> Response:
            manifest = take_backup(
                self._service.warehouse.engine,
                state=self._service.state,
                data_dir=self._service.data_dir,
                destination=Path(target),
                taken_at=self._service.clock.now(),
            )
            return _json(manifest.as_json())

        return await self._in_thread(take, kind="backup", limiter=self._other_threads)

    async def health(self, _request: Request) -> Response:
        """Say that the process lives."""
        return _json({"status": "alive"})

    async def ready(self, _request: Request) -> Response:
        """Say that the warehouse answers."""
        await anyio.to_thread.run_sync(self._service.warehouse.ping, limiter=self._other_threads)
        return _json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Tell Prometheus."""
        self._admit(request, needs=Role.READER)
        return Response(self._service.metrics.text(), media_type="text/plain; version=0.0.4")

    async def on_failure(self, _request: Request, error: Exception) -> Response:
        """Answer with what went wrong, for people and for the client."""
        if not isinstance(error, StewardError):
            raise error
        self._service.metrics.count_failure(error.exit_code)
        headers = {"WWW-Authenticate": "Bearer"} if wire.status_of(error) == 401 else {}
        return Response(
            wire.error_to_json(error),
            status_code=wire.status_of(error),
            media_type=wire.JSON,
            headers=headers,
        )

    async def on_unknown_route(self, request: Request, error: Exception) -> Response:
        """Answer a wrong path or method in the same shape as all failures."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        told = QueryError(
            f"{request.method} {request.url.path} is no route of the warehouse",
            hint="see GET /v1/tables for the tables and queries there are",
        )
        return Response(wire.error_to_json(told), status_code=status, media_type=wire.JSON)

    async def on_departure(self, _request: Request, _error: Exception) -> Response:
        """End a request whose sender went away; nothing was stored, nobody reads the answer."""
        return Response(status_code=CLIENT_GONE_STATUS)

    async def on_fault(self, _request: Request, error: Exception) -> Response:
        """Answer in the same shape where something failed that nobody foresaw; the log has it."""
        self._service.metrics.count_failure(StewardError.exit_code)
        told = StewardError(
            f"unexpected {type(error).__name__} in the warehouse",
            hint="this is a fault in steward; the log of the server shows where",
        )
        return Response(wire.error_to_json(told), status_code=500, media_type=wire.JSON)

    def _admit(self, request: Request, *, needs: Role) -> None:
        self._service.tokens.refuse(request.headers.get("authorization"), needs=needs)

    async def _body(self, request: Request) -> bytes:
        """Return the body, or stop reading as soon as it is too large."""
        limit = self._service.body_limit_bytes
        stated = request.headers.get("content-length", "0")
        if stated.isdecimal() and int(stated) > limit:
            raise _too_large(limit)
        chunks: list[bytes] = []
        received_bytes = 0
        async for chunk in request.stream():
            received_bytes += len(chunk)
            if received_bytes > limit:
                raise _too_large(limit)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _in_thread(
        self, work: Callable[[], Result], *, kind: str, limiter: anyio.CapacityLimiter
    ) -> Result:
        with self._service.metrics.timed(kind):
            return await anyio.to_thread.run_sync(partial(work), limiter=limiter)


def describe(service: Service) -> dict[str, object]:
    """Return what can be appended to and what can be asked, and by which version."""
    return {
        "version": __version__,
        "tables": {
            name: [
                {"name": field.name, "type": str(field.type), "nullable": field.nullable}
                for field in shape.schema
            ]
            for name, shape in service.warehouse.shapes.items()
        },
        "queries": {
            query.name: {
                "purpose": query.purpose,
                "grain": query.grain,
                "parameters": dict(query.parameters),
            }
            for query in named_queries().values()
        },
        "state_tables": list(service.state.get().table_names),
    }


def _table(
    warehouse: EmbeddedWarehouse, kind: str, *, name: str, parameters: dict[str, Parameter]
) -> Response:
    return Response(wire.ENCODERS[kind](warehouse.query(name, parameters)), media_type=kind)


def _json(content: object, *, status: int = 200) -> Response:
    return Response(wire.json_bytes(content), status_code=status, media_type=wire.JSON)


def _batch_id(request: Request) -> BatchId:
    batch_id = request.headers.get(BATCH_HEADER, "")
    if not 0 < len(batch_id) <= MAX_BATCH_ID_LENGTH:
        raise InputError(
            f"the batch has no id of 1 to {MAX_BATCH_ID_LENGTH} characters",
            hint="send the header Steward-Batch-Id with an id of its own for each batch",
        )
    return BatchId(batch_id)


def _parameters(body: bytes) -> dict[str, Parameter]:
    content = wire.json_from(body) if body else {}
    if not isinstance(content, dict):
        raise QueryError("the parameters are no JSON object", hint='send {"name": value, …}')
    for name, value in content.items():
        if isinstance(value, (list, dict)):
            raise QueryError(f"parameter ${name} is no single value", hint="send one value each")
    return content


def _statement(body: bytes) -> tuple[str, int | None]:
    content = wire.json_from(body)
    statement = content.get("statement") if isinstance(content, dict) else None
    row_limit = content.get("row_limit") if isinstance(content, dict) else None
    if not isinstance(statement, str):
        raise QueryError("the body has no statement", hint='send {"statement": "select …"}')
    if row_limit is not None and (type(row_limit) is not int or row_limit < 0):
        raise QueryError(f"row_limit {row_limit!r} is no row count", hint="send 0 or more, or null")
    return statement, row_limit


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(STATE_ROW_LIMIT))
    if not _COUNT.fullmatch(text) or int(text) > STATE_ROW_LIMIT:
        raise QueryError(f"limit {text[:20]!r} is not 0..{STATE_ROW_LIMIT}", hint="send a number")
    return int(text)


def _after(request: Request) -> int | None:
    text = request.query_params.get("after")
    if text is None:
        return None
    if not _KEY.fullmatch(text):
        raise QueryError(f"after {text[:20]!r} is no key", hint="send the last key that was read")
    return int(text)


def _too_large(limit_bytes: int) -> wire.BodyTooLargeError:
    return wire.BodyTooLargeError(
        f"the body is larger than {limit_bytes} bytes",
        hint="send smaller batches, or raise warehouse.body_limit_bytes",
    )
