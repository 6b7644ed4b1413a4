"""Rows of text laid out in columns of a given width: words fold, numbers are never cut.

A table too wide for the page is shown in several parts, each with the first column again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.table import Table

WORDS_LEAST: Final = 12
"""A column of words may get this narrow; longer words fold onto the next line."""
GAP: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One column: its title, its cells, and whether they are words."""

    title: str
    cells: tuple[str, ...]
    is_text: bool

    @property
    def natural_width(self) -> int:
        """Return the width at which nothing folds."""
        return max(cell_len(self.title), *map(cell_len, self.cells), 1)

    @property
    def least_width(self) -> int:
        """Return the width below which a number or a word of the title would be cut."""
        title = max(map(cell_len, self.title.split()), default=1)
        widest = max(map(cell_len, self.cells), default=1)
        return max(min(widest, WORDS_LEAST) if self.is_text else widest, title)


def grids(lanes: Sequence[Lane], *, width: int) -> Iterator[Table]:
    """Yield the table, in as many parts as the width needs."""
    for part in _parts(lanes, width):
        grid = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
        for lane, wide in zip(part, _widths(part, width), strict=True):
            grid.add_column(
                lane.title,
                justify="left" if lane.is_text else "right",
                width=wide,
                overflow="fold",
            )
        for row in zip(*(lane.cells for lane in part), strict=True):
            grid.add_row(*row)
        yield grid


def _parts(lanes: Sequence[Lane], width: int) -> Iterator[list[Lane]]:
    first, *rest = lanes
    part, used = [first], first.least_width + GAP
    for lane in rest:
        if used + lane.least_width + GAP > width and len(part) > 1:
            yield part
            part, used = [first], first.least_width + GAP
        part.append(lane)
        used += lane.least_width + GAP
    yield part


def _widths(part: Sequence[Lane], width: int) -> list[int]:
    """Return the natural widths, the widest columns narrowed until the part fits."""
    widths = [lane.natural_width for lane in part]
    least = [lane.least_width for lane in part]
    excess = sum(widths) + GAP * len(part) - width
    while excess > 0:
        index = max(range(len(part)), key=lambda at: widths[at] - least[at])
        if widths[index] <= least[index]:
            break
        widths[index] -= 1
        excess -= 1
    return widths
