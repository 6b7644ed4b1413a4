"""The remote warehouse: the same protocol as the embedded one, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import httpx
import pyarrow as pa

from sql import wire
from sql.rows import arrow_table
from sql.statedoor import STATE_ROW_LIMIT
from steward.errors import (
    InputError,
    SettingsError,
    StewardError,
    UnreachableError,
    WarehouseError,
)
from steward.ids import BatchId
from steward.ports import AppendReceipt, ArrowTable, Parameter, StateValue

CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 300.0
"""Longer than any statement may run: the server is the one to stop it."""


def connect(
    url: str, token: str | None = None, *, answer_s: float = ANSWER_TIMEOUT_S
) -> RemoteWarehouse:
    """Return the warehouse at this address; nothing is sent yet.

    Args:
        url: ``http://host:port`` of a running ``steward warehouse``.
        token: bearer token, where the server wants one.
        answer_s: how long to wait for the next piece of an answer.

    Raises:
        SettingsError: the address is none.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    timeout = httpx.Timeout(answer_s, connect=CONNECT_TIMEOUT_S)
    is_tls = url.lower().startswith("https:")
    try:
        client = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=timeout,
            trust_env=False,
            verify=is_tls,  # loading the machine's authorities takes 30 ms: only where needed
        )
    except (httpx.InvalidURL, ValueError) as error:
        raise SettingsError(
            f"warehouse.url {url!r} is no address: {error}", hint="write http://127.0.0.1:8420"
        ) from error
    return RemoteWarehouse(client, url=url)


class RemoteWarehouse:
    """Both directions of the warehouse port, and what the server offers beyond it."""

    def __init__(self, client: httpx.Client, *, url: str) -> None:
        """Keep the client; ``connect`` is the door."""
        self._client = client
        self._url = url

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> pa.Table:
        """Return the rows of a named query."""
        content = {key: _plain(value) for key, value in (parameters or {}).items()}
        return self._rows(f"/v1/query/{name}", content)

    def sql(self, statement: str, *, row_limit: int | None = None) -> pa.Table:
        """Return the rows of one read-only statement."""
        return self._rows("/v1/sql", {"statement": statement, "row_limit": row_limit})

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store all rows or none, once per batch id; safe to repeat after any failure."""
        answer = self._ask(
            "POST",
            f"/v1/append/{table}",
            content=wire.to_arrow(arrow_table(rows)),
            headers={"Content-Type": wire.ARROW, "Steward-Batch-Id": batch_id},
        )
        fields = self._fields(answer, "batch_id", "table", "row_count", "is_repeat")
        return AppendReceipt(
            batch_id=BatchId(fields["batch_id"]),
            table=fields["table"],
            row_count=fields["row_count"],
            is_repeat=fields["is_repeat"],
        )

    def describe(self) -> dict[str, object]:
        """Return the tables, named queries and state tables of the server."""
        return self._fields(self._ask("GET", "/v1/tables"))

    def state_rows(self, table: str) -> list[dict[str, object]]:
        """Return the newest rows of a state table, newest first."""
        return list(self._fields(self._ask("GET", f"/v1/state/{table}"), "rows")["rows"])

    def state_insert(self, table: str, row: Mapping[str, StateValue]) -> dict[str, object]:
        """Insert one row into a state table and return it as stored."""
        answer = self._ask("POST", f"/v1/state/{table}", content=json.dumps(row).encode())
        return dict(self._fields(answer, "row")["row"])

    def state_after(
        self, table: str, key: int, *, limit: int = STATE_ROW_LIMIT
    ) -> list[dict[str, object]]:
        """Return the oldest rows first, of those with a larger key."""
        answer = self._ask("GET", f"/v1/state/{table}?after={key}&limit={limit}")
        return list(self._fields(answer, "rows")["rows"])

    def state_append(
        self, rows: Sequence[tuple[str, Mapping[str, StateValue]]], *, seen: Mapping[str, int]
    ) -> list[dict[str, object]] | None:
        """Store all rows or none; None where a table has rows its writer has not seen."""
        told = [{"table": table, "row": dict(row)} for table, row in rows]
        content = json.dumps({"rows": told, "seen": dict(seen)}).encode()
        stored = self._fields(self._ask("POST", "/v1/state", content=content), "rows")["rows"]
        return None if stored is None else list(stored)

    def backup(self, destination: str) -> dict[str, object]:
        """Let the server write a backup into a new folder on its machine."""
        content = json.dumps({"destination": destination}).encode()
        return self._fields(self._ask("POST", "/v1/admin/backup", content=content))

    def is_ready(self) -> bool:
        """Tell whether a warehouse answers at the address."""
        try:
            return self._fields(self._ask("GET", "/ready")) == {"status": "ready"}
        except StewardError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _rows(self, path: str, content: Mapping[str, object]) -> pa.Table:
        answer = self._ask(
            "POST", path, content=json.dumps(content).encode(), headers={"Accept": wire.ARROW}
        )
        try:
            return wire.from_arrow(answer.content)
        except InputError as error:
            raise self._stranger() from error

    def _fields(self, answer: httpx.Response, *needed: str) -> dict[str, Any]:
        """Return the JSON object that a warehouse answers with."""
        try:
            fields = answer.json()
        except ValueError as error:
            raise self._stranger() from error
        if not isinstance(fields, dict) or not fields.keys() >= set(needed):
            raise self._stranger()
        return fields

    def _stranger(self) -> WarehouseError:
        return WarehouseError(
            f"what answers at {self._url} is no Steward warehouse, or its answer was cut off",
            hint="correct warehouse.url; it is the address that `steward warehouse` listens on",
        )

    def _ask(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        try:
            answer = self._client.request(method, path, content=content, headers=headers)
        except httpx.TransportError as error:
            raise UnreachableError(
                f"no answer from the warehouse at {self._url}: {error}",
                hint="start it with `steward warehouse`, or correct warehouse.url; "
                "an append may be repeated with the same batch id",
            ) from error
        if answer.is_success:
            return answer
        raise wire.error_from_json(answer.content, status=answer.status_code)


def _plain(value: Parameter) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
