"""The NVIDIA library without a GPU: compiled from C, read by the true ``pynvml``."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import skip_aloud

if TYPE_CHECKING:
    from collector.sources.nvml.node import NvmlNode

SOURCE = Path(__file__).parent / "nvmlstub.c"
NAME = "libnvidia-ml.so.1"
UUIDS = tuple(f"GPU-5e700000-0000-0000-0000-{index:012d}" for index in range(8))


def build(folder: Path, *flags: str) -> Path:
    """Compile the library into the folder and return its path; without gcc, skip aloud."""
    gcc = shutil.which("gcc")
    if gcc is None:
        skip_aloud("gcc is not installed: it compiles the stub of NVIDIA's library")
        raise AssertionError
    place = folder / NAME
    options = ("-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{NAME}")
    subprocess.run([gcc, *options, *flags, "-o", str(place), str(SOURCE)], check=True)
    return place


def set_scene(place: Path, words: str) -> Path:
    """Write what is played in one piece: it is read in the middle of everything."""
    fresh = place.with_suffix(".new")
    fresh.write_text(words, encoding="ascii")
    return fresh.replace(place)


@dataclass(slots=True)
class Stub:
    """The library in this process; what it plays stands in a file."""

    scene: Path
    _xids: list[int] = field(default_factory=list)

    def play(self, *words: str) -> None:
        """Play this from the next call on."""
        set_scene(self.scene, " ".join(words) or "ok")

    def report_xid(self, gpu: int, code: int, *words: str) -> None:
        """Report one XID beside what is played."""
        self._xids.append(code)
        self.play(*words, f"xid={gpu}:{code}:{len(self._xids)}")

    @contextmanager
    def node(self, *words: str, deadline_s: float = 1.5) -> Iterator[NvmlNode]:
        """Start the driver, playing this, for the length of the block."""
        from collector.sources.nvml.node import NvmlNode

        self.play(*words)
        node = NvmlNode(deadline_s=deadline_s, proc_root=Path("/proc"))
        try:
            node.open()
            yield node
        finally:
            node.close()


def load(place: Path, scene: Path) -> Stub:
    """Load the library into this process, where ``pynvml`` finds it by its name."""
    os.environ["NVMLSTUB_FILE"] = str(scene)
    os.environ["NVMLSTUB_WAIT_MS"] = "50"
    ctypes.CDLL(str(place))
    return Stub(scene)
