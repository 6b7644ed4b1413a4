"""Stores what an import source yields: batch by batch, exactly once, with a count by table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from collector.batches import Batch
from steward.errors import AccessError, InputError
from steward.ports import Parameter, Reader, Writer


@dataclass(slots=True, kw_only=True)
class ImportTally:
    """What became of an import's batches."""

    stored_rows: Counter[str] = field(default_factory=Counter)
    repeated_rows: Counter[str] = field(default_factory=Counter)
    """Rows of batches that the warehouse already had."""

    @property
    def is_repeat(self) -> bool:
        """Tell whether there was something to import and all of it was there before."""
        return not self.stored_rows and bool(self.repeated_rows)


def store(
    writer: Writer, batches: Iterable[Batch], *, on_batch: Callable[[Batch], None]
) -> ImportTally:
    """Append all batches in order; tell ``on_batch`` after each.

    An import that was cut short goes on where it stopped when it is repeated.
    """
    tally = ImportTally()
    for batch in batches:
        receipt = writer.append(batch.table, batch.rows, batch_id=batch.batch_id)
        counter = tally.repeated_rows if receipt.is_repeat else tally.stored_rows
        counter[batch.table] += receipt.row_count
        on_batch(batch)
    return tally


def stored_identities(reader: Reader, *, source: str, label: str, cluster: str) -> list[str]:
    """Return the identities of earlier imports of this source into this cluster, ascending.

    Raises:
        AccessError: the token may not read.
    """
    rows = stored_rows(reader, "imported_node", source=source, cluster=cluster)
    identities = {json.loads(row["labels_json"]).get(label) for row in rows}
    return sorted(each for each in identities if each is not None)


def stored_rows(reader: Reader, query: str, **parameters: Parameter) -> list[dict[str, Any]]:
    """Return what a named query finds, before anything is stored.

    Raises:
        AccessError: the token may append and not read.
    """
    try:
        return pa.table(reader.query(query, parameters)).to_pylist()
    except AccessError as error:
        raise AccessError(
            f"an import first looks for earlier imports, and may not: {error.message}",
            hint="list the token in warehouse.reader_tokens as well as in writer_tokens, "
            "or use an admin token; nothing was stored",
        ) from error


def refuse_other_identity(earlier: Iterable[str], identity: str, *, what: str) -> None:
    """Raise InputError where the warehouse holds another import of the same kind.

    Two fleets or traces under the same names would be added up as if they were one.
    """
    others = [each for each in earlier if each != identity]
    if others:
        raise InputError(
            f"the warehouse already holds another {what}: {others[0]}",
            hint="import into another folder with --data-dir; nothing was stored",
        )
