"""Small openb files for tests: a case shows only the line it is about."""

from __future__ import annotations

from pathlib import Path

NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
POD_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
NODES = (NODE_HEADER, "n0,64000,1024,2,P100", "n1,32000,512,0,")
PODS = (
    POD_HEADER,
    "p0,12000,16,1,1000,,LS,Running,0,100,0",
    "p1,6000,8,1,460,T4|P100,BE,Pending,5,50,",
)


def write_lines(path: Path, *lines: str, end: str = "\n") -> Path:
    """Write the lines and return the path."""
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def node_file(folder: Path, *lines: str) -> Path:
    """Return a node list of these lines, or of two harmless nodes."""
    return write_lines(folder / "nodes.csv", *(lines or NODES))


def pod_file(folder: Path, *lines: str) -> Path:
    """Return a pod list of these lines, or of a scheduled and a never scheduled pod."""
    return write_lines(folder / "pods.csv", *(lines or PODS))
