"""The shapes that tenants ask for again and again, with how often and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from collector.sources.simulated.fleet import GIB_BYTES, NO_GPU, SHARED_GPU, WHOLE_GPU
from collector.sources.simulated.requests import DEVELOPMENT, INFERENCE, SYSTEM, TRAINING
from steward.units import SECONDS_PER_HOUR

_H: Final = SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One recurring shape; run times are log-normal around their median."""

    name: str
    workload_class: str
    weight: float
    """How many of 100 requests have this shape."""
    models: tuple[str, ...]
    slots_per_pod: int
    cpu_milli: int
    memory_gib: int
    median_runtime_s: int
    runtime_sigma: float
    behaviours: tuple[tuple[str, float], ...]
    """Name and probability; they sum to 1."""
    pod_count: int = 1
    resource: str = WHOLE_GPU
    priority_class: str = "standard"
    patience_s: int = 12 * _H
    is_in_working_hours: bool = True

    @property
    def memory_bytes(self) -> int:
        """Return the memory of one pod."""
        return self.memory_gib * GIB_BYTES


_USUAL: Final = (
    ("training", 0.66),
    ("input_bound", 0.16),
    ("memory_bound", 0.07),
    ("short_kernels", 0.05),
    ("one_sm", 0.02),
    ("deadlock", 0.01),
    ("idle", 0.03),
)
_PERSON: Final = (("notebook", 0.62), ("idle", 0.33), ("one_sm", 0.05))
_SERVICE: Final = (("serving", 0.9), ("idle", 0.1))
_BIG: Final = ("H100-SXM-80GB", "A100-SXM4-40GB")
_SMALL: Final = ("L40S", "T4")

TEMPLATES: Final = (
    Template(
        name="train",
        workload_class=TRAINING,
        weight=15,
        models=("A100-SXM4-40GB", "H100-SXM-80GB"),
        slots_per_pod=1,
        cpu_milli=12_000,
        memory_gib=90,
        median_runtime_s=4 * _H,
        runtime_sigma=0.9,
        behaviours=_USUAL,
    ),
    Template(
        name="train4",
        workload_class=TRAINING,
        weight=7,
        models=_BIG,
        slots_per_pod=4,
        cpu_milli=56_000,
        memory_gib=380,
        median_runtime_s=6 * _H,
        runtime_sigma=0.7,
        behaviours=_USUAL,
    ),
    Template(
        name="pretrain",
        workload_class=TRAINING,
        weight=3,
        models=_BIG,
        slots_per_pod=8,
        cpu_milli=96_000,
        memory_gib=760,
        median_runtime_s=9 * _H,
        runtime_sigma=0.6,
        behaviours=(("training", 0.86), ("input_bound", 0.12), ("deadlock", 0.02)),
        patience_s=30 * _H,
    ),
    Template(
        name="gang",
        workload_class=TRAINING,
        weight=1.2,
        models=("H100-SXM-80GB",),
        slots_per_pod=8,
        pod_count=2,
        cpu_milli=96_000,
        memory_gib=760,
        median_runtime_s=10 * _H,
        runtime_sigma=0.5,
        behaviours=(("training", 0.9), ("input_bound", 0.08), ("deadlock", 0.02)),
        patience_s=48 * _H,
    ),
    Template(
        name="finetune",
        workload_class=TRAINING,
        weight=11,
        models=("L40S", "A100-SXM4-40GB"),
        slots_per_pod=2,
        cpu_milli=16_000,
        memory_gib=96,
        median_runtime_s=5 * _H,
        runtime_sigma=0.8,
        behaviours=_USUAL,
    ),
    Template(
        name="sweep",
        workload_class=TRAINING,
        weight=29,
        models=_SMALL,
        slots_per_pod=1,
        cpu_milli=7_000,
        memory_gib=30,
        median_runtime_s=2 * _H,
        runtime_sigma=0.9,
        behaviours=_USUAL,
        priority_class="best-effort",
        patience_s=3 * _H,
    ),
    Template(
        name="serve",
        workload_class=INFERENCE,
        weight=4,
        models=("L40S", "T4"),
        slots_per_pod=1,
        cpu_milli=8_000,
        memory_gib=40,
        median_runtime_s=40 * _H,
        runtime_sigma=0.5,
        behaviours=_SERVICE,
        priority_class="production",
        patience_s=72 * _H,
    ),
    Template(
        name="serve-llm",
        workload_class=INFERENCE,
        weight=1,
        models=_BIG,
        slots_per_pod=4,
        cpu_milli=48_000,
        memory_gib=300,
        median_runtime_s=30 * _H,
        runtime_sigma=0.4,
        behaviours=_SERVICE,
        priority_class="production",
        patience_s=72 * _H,
    ),
    Template(
        name="serve-slice",
        workload_class=INFERENCE,
        weight=3,
        models=("A100-SXM4-40GB",),
        slots_per_pod=1,
        resource="nvidia.com/mig-2g.10gb",
        cpu_milli=4_000,
        memory_gib=16,
        median_runtime_s=24 * _H,
        runtime_sigma=0.5,
        behaviours=_SERVICE,
        priority_class="production",
    ),
    Template(
        name="notebook",
        workload_class=DEVELOPMENT,
        weight=10,
        models=("L40S", "T4", "A100-SXM4-40GB"),
        slots_per_pod=1,
        cpu_milli=8_000,
        memory_gib=48,
        median_runtime_s=14 * _H,
        runtime_sigma=0.7,
        behaviours=_PERSON,
        patience_s=2 * _H,
    ),
    Template(
        name="notebook-slice",
        workload_class=DEVELOPMENT,
        weight=6,
        models=("A100-SXM4-40GB",),
        slots_per_pod=1,
        resource="nvidia.com/mig-1g.5gb",
        cpu_milli=4_000,
        memory_gib=16,
        median_runtime_s=12 * _H,
        runtime_sigma=0.7,
        behaviours=_PERSON,
        patience_s=2 * _H,
    ),
    Template(
        name="notebook-shared",
        workload_class=DEVELOPMENT,
        weight=7,
        models=("T4",),
        slots_per_pod=1,
        resource=SHARED_GPU,
        cpu_milli=2_000,
        memory_gib=8,
        median_runtime_s=20 * _H,
        runtime_sigma=0.6,
        behaviours=_PERSON,
        patience_s=2 * _H,
    ),
    Template(
        name="ingest",
        workload_class=SYSTEM,
        weight=3,
        models=("L40S", "A100-SXM4-40GB"),
        slots_per_pod=0,
        resource=NO_GPU,
        cpu_milli=24_000,
        memory_gib=64,
        median_runtime_s=3 * _H,
        runtime_sigma=0.5,
        behaviours=(("idle", 1.0),),
        is_in_working_hours=False,
    ),
)
