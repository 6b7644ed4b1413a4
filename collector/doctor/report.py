"""What ``steward collect doctor`` prints: a table for people or JSON for programs."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from collector.doctor.diagnosis import Diagnosis
from collector.doctor.finding import SEVERITIES, Finding, Severity
from collector.summary import MACHINE_WIDTH

TOLD = 3
"""Of many findings that are mended in the same way, those that the table tells; JSON has all."""
_STYLES = {
    Severity.FAULT: "bold red",
    Severity.GAP: "yellow",
    Severity.NOTE: "cyan",
    Severity.FINE: "green",
}
_MEANINGS = {
    Severity.FAULT: "nothing is read or kept there",
    Severity.GAP: "reports lack something",
    Severity.NOTE: "worth knowing",
    Severity.FINE: "as it should be",
}


def print_diagnosis(diagnosis: Diagnosis, *, form: str) -> None:
    """Print to standard output.

    Args:
        diagnosis: what was found.
        form: ``table`` or ``json``.
    """
    if form == "json":
        sys.stdout.write(as_json(diagnosis))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=MACHINE_WIDTH)
    for severity in SEVERITIES:
        if found := diagnosis.of(severity):
            console.print(_table(severity, found))
            console.print()
    if diagnosis.cluster_role is not None:
        _print_role(diagnosis, console)
    console.print(Text(diagnosis.conclusion))


def as_json(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as one JSON document."""
    content = {
        "conclusion": diagnosis.conclusion,
        "exit_code": diagnosis.exit_code,
        "target_count": diagnosis.target_count,
        "device_count": diagnosis.device_count,
        "counts": {one: len(diagnosis.of(one)) for one in SEVERITIES},
        "findings": [asdict(one) for one in diagnosis.findings],
        "cluster_role": diagnosis.cluster_role,
        "binding_command": diagnosis.binding_command,
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _table(severity: Severity, findings: list[Finding]) -> Table:
    """Return the table of one severity: what is mended in the same way is one row."""
    table = Table(
        title=f"{severity.upper()} - {_MEANINGS[severity]}",
        title_justify="left",
        title_style=_STYLES[severity],
        box=None,
        pad_edge=False,
    )
    has_remedy = any(one.remedy for one in findings)
    table.add_column("where", overflow="fold", ratio=3)
    table.add_column("what", overflow="fold", ratio=5)
    if has_remedy:
        table.add_column("what to do", overflow="fold", ratio=5)
    for alike in _grouped(findings, key=lambda one: (one.code, one.remedy)):
        for cells in _rows(alike):
            table.add_row(*(Text(printable(cell)) for cell in cells[: len(table.columns)]))
    return table


def _rows(alike: list[Finding]) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of what is mended in the same way: one per message, the first few."""
    by_words = _grouped(alike, key=_words)
    for place, same in enumerate(by_words[:TOLD]):
        remedy = (same[0].remedy or "") if place == 0 else ""
        yield _subjects([one.subject for one in same]), _words(same[0]), remedy
    if left := by_words[TOLD:]:
        yield f"and {sum(map(len, left)):,} more", "much the same", ""


def _grouped(
    findings: Iterable[Finding], *, key: Callable[[Finding], Hashable]
) -> list[list[Finding]]:
    groups: defaultdict[Hashable, list[Finding]] = defaultdict(list)
    for one in findings:
        groups[key(one)].append(one)
    return list(groups.values())


def _words(one: Finding) -> str:
    """Return the message without the subject, which stands beside it."""
    return one.message.removeprefix(one.subject).lstrip(": ")


def _subjects(subjects: list[str]) -> str:
    told = subjects[:TOLD]
    left = len(subjects) - len(told)
    return "\n".join([*told, *([f"and {left:,} more"] if left else [])])


def _print_role(diagnosis: Diagnosis, console: Console) -> None:
    console.print(Text("The role that the collector's account needs (kubectl apply -f -):"))
    console.print(Text(diagnosis.cluster_role or ""))
    if diagnosis.binding_command is not None:
        console.print(Text(f"and its binding: {diagnosis.binding_command}\n"), soft_wrap=True)


def printable(text: str) -> str:
    """Return the text with everything escaped that could move a terminal's cursor."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text
    )
