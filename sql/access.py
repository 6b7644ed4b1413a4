"""Finding the warehouse: the address in the settings, else the running owner, else the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sql.client import ANSWER_TIMEOUT_S, RemoteWarehouse, connect
from sql.limits import limits_of
from sql.ownership import read_card
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.settings import Settings, WarehouseSettings


@contextmanager
def open_warehouse(settings: Settings) -> Iterator[EmbeddedWarehouse | RemoteWarehouse]:
    """Open the warehouse that these settings mean, for the length of a ``with`` block.

    Raises:
        UnreachableError: an address is set, and nothing answers there.
        OwnedElsewhereError: another process owns the files and offers no address.
        NewerSchemaError, WarehouseError: the files cannot be opened.
    """
    remote = remote_of(settings)
    if remote is None:
        with closing(
            open_embedded(settings.data_dir, limits=limits_of(settings.warehouse))
        ) as embedded:
            yield embedded
    else:
        with closing(remote):
            yield remote


def remote_of(settings: Settings, *, answer_s: float = ANSWER_TIMEOUT_S) -> RemoteWarehouse | None:
    """Return the server to ask: the one that is set, or the live owner of the data directory."""
    if settings.warehouse.url is not None:
        return connect(settings.warehouse.url, settings.warehouse.token, answer_s=answer_s)
    card = read_card(settings.data_dir)
    if card is None:
        return None
    remote = connect(card.url, own_token(settings.warehouse), answer_s=answer_s)
    if remote.is_ready():
        return remote
    remote.close()
    return None


def own_token(settings: WarehouseSettings) -> str | None:
    """Return the token for a server with the same settings: one's own, else an administrator's."""
    return settings.token or next(iter(settings.admin_tokens), None)
