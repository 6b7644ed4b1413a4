"""Accounting texts of the shape that ``sacct --parsable2`` prints.

The shape is that of sacct's manual page and of lines that people published of real clusters: steps
below their jobs, ``Unknown`` and ``None`` times, typed and plain GPU counts, het components as
``1853+0``, arrays that still wait as ``102_[3-8%2]``, ``CANCELLED by UID``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

COLUMNS = (
    "JobID",
    "JobName",
    "User",
    "Account",
    "Partition",
    "QOS",
    "State",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "ReqTRES",
    "AllocTRES",
    "NodeList",
    "Priority",
    "Restarts",
)
ASKED = "billing=16,cpu=16,gres/gpu=4,mem=64G,node=2"
GIVEN = "billing=16,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2"
DONE: Mapping[str, str] = {
    "JobID": "100",
    "JobName": "train",
    "User": "ann",
    "Account": "vision",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "Submit": "2026-05-01T10:00:00",
    "Eligible": "2026-05-01T10:00:00",
    "Start": "2026-05-01T10:05:00",
    "End": "2026-05-01T12:05:00",
    "ReqTRES": ASKED,
    "AllocTRES": GIVEN,
    "NodeList": "gpu[001-002]",
    "Priority": "4294",
    "Restarts": "0",
}
PENDING: Mapping[str, str] = {
    **DONE,
    "State": "PENDING",
    "Start": "Unknown",
    "End": "Unknown",
    "AllocTRES": "",
    "NodeList": "None assigned",
}
CANCELLED: Mapping[str, str] = {
    **PENDING,
    "State": "CANCELLED by 1000",
    "Start": "None",
    "End": "2026-05-01T11:00:00",
}
RUNNING: Mapping[str, str] = {**DONE, "State": "RUNNING", "End": "Unknown"}
STEP: Mapping[str, str] = {
    **DONE,
    "JobID": "100.batch",
    "JobName": "batch",
    "User": "",
    "Partition": "",
    "QOS": "",
    "ReqTRES": "",
    "AllocTRES": "cpu=8,gres/gpu=2,mem=32G,node=1",
    "NodeList": "gpu001",
    "Priority": "",
    "Restarts": "",
}


def sacct_text(
    jobs: Iterable[Mapping[str, str]],
    *,
    columns: Iterable[str] = COLUMNS,
    is_trailing: bool = False,
) -> str:
    """Return what sacct prints of these jobs."""
    names = list(columns)
    end = "|\n" if is_trailing else "\n"
    lines = ["|".join(names), *("|".join(job.get(name, "") for name in names) for job in jobs)]
    return "".join(line + end for line in lines)


def sacct_file(folder: Path, *jobs: Mapping[str, str], name: str = "sacct.txt") -> Path:
    """Write them to a file."""
    file = folder / name
    file.write_text(sacct_text(jobs), encoding="utf-8")
    return file
