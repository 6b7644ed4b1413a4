"""Keep the books of device-time: from stored rows to the ledger, exact to the tick."""

from __future__ import annotations

from analytics.bookkeeping.books import BOOK_ROWS, Books, keep_books
from analytics.bookkeeping.material import BOOK_INPUTS
from analytics.bookkeeping.power import power_floors
from analytics.bookkeeping.shapes_now import learnt_shapes
from analytics.bookkeeping.spans import hour_borders

__all__ = [
    "BOOK_INPUTS",
    "BOOK_ROWS",
    "Books",
    "hour_borders",
    "keep_books",
    "learnt_shapes",
    "power_floors",
]
