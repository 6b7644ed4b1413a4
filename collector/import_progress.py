"""What a person sees of an import: a bar while it runs, then the rows by table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from collector.imports import ImportTally


@contextmanager
def progress(title: str, *, step_count: int, unit: str) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error where it is a terminal, else one line; yield what advances it.

    Args:
        title: what is imported.
        step_count: how many steps make the whole.
        unit: what one step is, in the plural.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        sys.stderr.write(f"importing {title} ({step_count} {unit})\n")
        yield lambda: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(f"importing {title}", total=step_count)
        yield lambda: bar.advance(task)


def summary(title: str, tally: ImportTally) -> str:
    """Return the lines that end an import: rows by table, or that all were there before."""
    if tally.is_repeat:
        count = sum(tally.repeated_rows.values())
        return f"already imported: {title} ({count:,} rows were stored before, none now)\n"
    width = max((len(name) for name in tally.stored_rows), default=0)
    lines = [f"imported {title}"]
    lines.extend(
        f"  {name:<{width}}  {count:>12,} rows" for name, count in sorted(tally.stored_rows.items())
    )
    if tally.repeated_rows:
        lines.append(f"  {sum(tally.repeated_rows.values()):,} rows were stored before")
    return "\n".join(lines) + "\n"
