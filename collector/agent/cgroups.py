"""Whose a process is: pod and container from its control group.

Reads ``/proc/PID/cgroup`` of the host, in the forms of containerd, CRI-O and Docker, of cgroup v1
and v2, of the systemd and the cgroupfs driver. Not told for processes in a sandbox of their own
(gVisor, Kata), for an MPS server that works for others, and in a guest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_POD: Final = re.compile(
    r"pod(?P<uid>[0-9a-f]{8}([-_])[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{4}\2[0-9a-f]{12}"
    r"|[0-9a-f]{32})(?:\.slice)?(?=/|$)"
)
"""A static pod's UID is 32 digits without dashes; systemd writes dashes as underscores."""
_CONTAINER: Final = re.compile(r"(?:^|[/:-])(?P<id>[0-9a-f]{64})(?:\.scope)?(?=/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOwner:
    """Whose a process is; None is not told, or nobody's."""

    name: str | None
    """The program's name, at most 15 characters."""
    pod_uid: str | None
    container_id: str | None


NOBODY: Final = ProcessOwner(name=None, pod_uid=None, container_id=None)


def owner_of(pid: int, *, proc_root: Path) -> ProcessOwner:
    """Return whose this process is; a process that has ended is nobody's."""
    folder = proc_root / str(pid)
    groups = _read(folder / "cgroup")
    pod_uid, container_id = parse_cgroup(groups or "")
    return ProcessOwner(name=_name(folder), pod_uid=pod_uid, container_id=container_id)


def parse_cgroup(text: str) -> tuple[str | None, str | None]:
    """Return pod UID and container id from the lines of a ``cgroup`` file."""
    pod_uid = container_id = None
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        pod = _POD.search(path)
        if pod is not None and pod_uid is None:
            pod_uid = pod["uid"].replace("_", "-")
        container = _CONTAINER.search(path)
        if container is not None and container_id is None:
            container_id = container["id"]
    return pod_uid, container_id


def _name(folder: Path) -> str | None:
    text = _read(folder / "comm")
    return None if text is None else text.rstrip("\n") or None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
