"""Exporters whose every value follows from the slot of time, so that two scrapers can be compared.

Within a slot an exporter says the same however often it is asked. Each device's free memory in MiB
(and each board's energy in joules) is the slot's number: rows of two scrapers with the same number
tell the same moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.exporter_server import Answer, ExporterServer, exporter_server, exposition

SLOT_COUNT = 1_000_000
PLAIN, MIG, DATED = "/metrics", "/mig/metrics", "/dated/metrics"
MODEL = "NVIDIA A100-SXM4-40GB"
BLANK_MIB = 9_223_372_036_854_775_792
DOWN_EVERY, LOST_EVERY, XID_EVERY, POD_EVERY = 20, 24, 14, 10
"""In slots: a target that fails, a GPU that is away, an XID that is shown, a pod that changes."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Counts slots of a length."""

    length_s: float

    def now(self) -> int:
        """Return the slot of this moment."""
        return math.floor(time.time() / self.length_s) % SLOT_COUNT


class SlotAnswers(dict[str, Answer]):
    """Answers that are made when they are asked for."""

    def __init__(self, makers: dict[str, Callable[[int], Answer]], slots: Slots) -> None:
        """Take one maker for each path."""
        super().__init__()
        self.makers = makers
        self.slots = slots

    def get(self, path: str, default: Answer) -> Answer:  # type: ignore[override]  # one use only
        """Return what a path says in this slot."""
        maker = self.makers.get(path)
        return default if maker is None else maker(self.slots.now())


@contextmanager
def slot_exporters(slots: Slots) -> Iterator[ExporterServer]:
    """Serve the three exporters on one port of 127.0.0.1."""
    with exporter_server() as server:
        server.answers = SlotAnswers(
            {
                PLAIN: plain_answer,
                MIG: lambda slot: exposition(mig_text(slot)),
                DATED: lambda slot: exposition(dated_text(slot, slots)),
            },
            slots,
        )
        yield server


def plain_answer(slot: int) -> Answer:
    """Return four GPUs of one node; every now and then the exporter fails."""
    if slot % DOWN_EVERY == DOWN_EVERY - 1:
        return Answer(status="503 Service Unavailable", body=b"busy\n")
    return exposition(plain_text(slot))


def plain_text(slot: int) -> str:
    """Return four GPUs: changing pods, a blank value, an XID, one that goes away and comes back."""
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for index in range(4):
        if index == 3 and slot % LOST_EVERY >= LOST_EVERY - 6:
            continue
        pod = f"train-{slot // POD_EVERY % 3}" if index < 2 else ""
        labels = (
            f'gpu="{index}",UUID="GPU-plain-{index}",device="nvidia{index}",modelName="{MODEL}",'
            f'Hostname="plain-node",DCGM_FI_DRIVER_VERSION="535.129.03",'
            f'container="{pod and "main"}",namespace="{pod and "team-a"}",pod="{pod}"'
        )
        used = BLANK_MIB if index == 1 and slot % 7 == 0 else 1_000 + (slot * 13 + index) % 30_000
        xid = 31 if index == 2 and slot % XID_EVERY >= XID_EVERY // 2 else 0
        readings = {
            "DCGM_FI_DEV_GPU_UTIL": (slot * 7 + index) % 101,
            "DCGM_FI_DEV_MEM_COPY_UTIL": (slot * 3 + index) % 101,
            "DCGM_FI_PROF_SM_ACTIVE": ((slot * 17 + index) % 1_000) / 1_000,
            "DCGM_FI_PROF_DRAM_ACTIVE": ((slot * 11 + index) % 900) / 999,
            "DCGM_FI_DEV_FB_USED": used,
            "DCGM_FI_DEV_FB_FREE": slot,
            "DCGM_FI_DEV_POWER_USAGE": 100 + ((slot + index) % 3_001) / 10,
            "DCGM_FI_DEV_SM_CLOCK": 1_410 - (slot + index) % 300,
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": slot * 1_000,
            "DCGM_FI_DEV_XID_ERRORS": xid,
            "DCGM_FI_DEV_GPU_TEMP": 30 + (slot + index) % 50,
        }
        lines += [f"{name}{{{labels}}} {value}" for name, value in readings.items()]
    return "\n".join(lines) + "\n"


def mig_text(slot: int) -> str:
    """Return one board in two instances; what belongs to the board is repeated for each."""
    lines = []
    for instance, profile in ((7, "1g.5gb"), (9, "2g.10gb")):
        labels = (
            f'gpu="0",UUID="GPU-mig-0",device="nvidia0",modelName="{MODEL}",'
            f'GPU_I_PROFILE="{profile}",GPU_I_ID="{instance}",Hostname="mig-node"'
        )
        readings = {
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ((slot * 31 + instance) % 10_000) / 10_000,
            "DCGM_FI_DEV_FB_USED": (slot + instance) % 4_096,
            "DCGM_FI_DEV_FB_FREE": slot,
            "DCGM_FI_DEV_POWER_USAGE": 70 + slot % 300,
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": slot * 1_000,
        }
        lines += [f"{name}{{{labels}}} {value}" for name, value in readings.items()]
    return "\n".join(lines) + "\n"


def dated_text(slot: int, slots: Slots) -> str:
    """Return a GPU whose lines carry times of their own, two seconds before the slot."""
    own_ms = round((math.floor(time.time() / slots.length_s) * slots.length_s - 2) * 1_000)
    labels = f'gpu="0",UUID="GPU-dated-0",modelName="{MODEL}",Hostname="dated-node"'
    readings = {
        "DCGM_FI_DEV_GPU_UTIL": slot % 101,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": slot * 1_000,
    }
    return "".join(f"{name}{{{labels}}} {value} {own_ms}\n" for name, value in readings.items())


def gpu_text_held_by(pod: str) -> str:
    """Return one GPU with the pod's labels; empty for none."""
    labels = (
        f'gpu="0",UUID="GPU-held",modelName="{MODEL}",Hostname="plain-node",'
        f'container="{pod and "main"}",namespace="{pod and "lab"}",pod="{pod}"'
    )
    return f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 90\nDCGM_FI_DEV_POWER_USAGE{{{labels}}} 300\n"
