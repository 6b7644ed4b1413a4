"""Whether the warehouse takes this collector's rows; nothing is stored or changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from collector.doctor.codes import Code
from collector.doctor.finding import Finding, fault, fine, named, note
from collector.tables import SCHEMAS
from sql.access import remote_of
from sql.client import RemoteWarehouse
from steward.errors import AccessError, InputError, StewardError
from steward.ids import BatchId
from steward.settings import Settings
from steward.version import __version__

ANSWER_S: Final = 10.0
_NO_ID: Final = BatchId("")
"""A batch without an id is refused after the token was looked at, and before any row is."""


def warehouse_findings(settings: Settings) -> list[Finding]:
    """Return whether the warehouse that these settings mean takes rows."""
    remote = remote_of(settings, answer_s=ANSWER_S)
    if remote is None:
        return [_unserved(settings)]
    subject = settings.warehouse.url or f"the owner of {settings.data_dir}"
    with closing(remote):
        try:
            return _served(remote, subject=subject)
        except StewardError as error:
            return [fault(Code.WAREHOUSE_AWAY, subject, message=error.message, remedy=error.hint)]


def _unserved(settings: Settings) -> Finding:
    return note(
        Code.WAREHOUSE_UNSERVED,
        str(settings.data_dir),
        message="no warehouse server is set or running: the collector opens the file in this "
        "folder itself, for a moment at a time",
        remedy="start `steward warehouse` where others read meanwhile; `steward db check` examines "
        "the file",
    )


def _served(remote: RemoteWarehouse, *, subject: str) -> list[Finding]:
    """Return what the server says.

    Raises:
        StewardError: nothing answers, or it is no warehouse.
    """
    try:
        description: Mapping[str, Any] | None = remote.describe()
    except AccessError:
        description = None
    refusal = _refusal(remote)
    if refusal is not None:
        return [
            fault(Code.WAREHOUSE_REFUSES, subject, message=refusal.message, remedy=refusal.hint)
        ]
    if description is None:
        return [_unchecked(subject)]
    return description_findings(description, subject=subject)


def description_findings(description: Mapping[str, Any], *, subject: str) -> list[Finding]:
    """Return how far a server's tables and version are those of this collector.

    Args:
        description: as ``GET /v1/tables`` has it.
        subject: names the server.
    """
    tables = columns_of(description)
    if tables is None:
        return [_stranger(subject)]
    found = [*_mismatches(tables, subject), *_other_version(description, subject)]
    message = f"version {__version__} takes rows from this collector"
    return found or [fine(Code.WAREHOUSE_READY, subject, message=message)]


def columns_of(description: Mapping[str, Any]) -> Mapping[str, Mapping[str, bool]] | None:
    """Return whether each column may be null, by table and column; None where it is no answer."""
    try:
        return {
            str(table): {str(one["name"]): bool(one["nullable"]) for one in columns}
            for table, columns in description["tables"].items()
        }
    except (KeyError, TypeError, AttributeError):
        return None


def _stranger(subject: str) -> Finding:
    return fault(
        Code.WAREHOUSE_AWAY,
        subject,
        message="what answers there is no Steward warehouse",
        remedy="correct warehouse.url; it is the address that `steward warehouse` listens on",
    )


def _refusal(remote: RemoteWarehouse) -> AccessError | None:
    """Return why the token may not append; None where it may."""
    try:
        remote.append("scrape", SCHEMAS["scrape"].empty_table(), batch_id=_NO_ID)
    except AccessError as error:
        return error
    except InputError:
        return None
    return None


def _unchecked(subject: str) -> Finding:
    return note(
        Code.WAREHOUSE_UNCHECKED,
        subject,
        message="the token may append and not read, so the tables were not compared with what this "
        "collector writes",
        remedy="none; for the comparison run this once with a token that may read too",
    )


def _mismatches(tables: Mapping[str, Mapping[str, bool]], subject: str) -> Iterator[Finding]:
    """Yield where the server would refuse what is written here."""
    lacking = {
        f"{table}.{column}"
        for table, schema in SCHEMAS.items()
        for column in schema.names
        if column not in tables.get(table, {})
    }
    wanting = {
        f"{table}.{column}"
        for table, schema in SCHEMAS.items()
        for column, may_be_null in tables.get(table, {}).items()
        if not may_be_null and column not in schema.names
    }
    for words, columns in (("lacks", lacking), ("wants also", wanting)):
        if columns:
            yield fault(
                Code.WAREHOUSE_MISMATCH,
                subject,
                message=f"the warehouse {words} {named(columns)}: it refuses such rows",
                remedy="bring warehouse and collector to the same version",
            )


def _other_version(description: Mapping[str, Any], subject: str) -> Iterator[Finding]:
    version = description.get("version")
    if version != __version__:
        yield note(
            Code.WAREHOUSE_VERSION,
            subject,
            message=f"the warehouse is of version {version or 'unknown'}, this collector of "
            f"{__version__}",
            remedy="bring both to the same version",
        )
