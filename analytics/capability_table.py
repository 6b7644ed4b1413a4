"""GPU models with the figures that their tiers are told by.

The figures were entered from memory of the vendors' published data sheets and were not checked line
by line against them: a row is a starting point, not a citation. ``steward capability set`` records
what counts instead of a row.

Compute is dense (without sparsity) BF16 matrix throughput, FP16 where a model has no BF16, FP32
where it has neither; where only figures with sparsity are published, half of them. Boards with
several devices (K80, M60, A16, MI250) are listed by what the driver shows as one device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One GPU model."""

    words: frozenset[str]
    """Words that its names have in common."""
    form: str | None
    """``sxm``, ``pcie``, ``nvl``, ``oam``; None: it comes in one form."""
    generation: str
    memory_gb: int
    """As sold, in units of 10^9 or 2^30 bytes as the maker prints it."""
    bandwidth_gb_per_s: int
    compute_tflops: float
    link: str
    """``NVLink``, ``xGMI``, ``HCCS`` or ``PCIe``."""
    has_mig: bool
    source: str
    """``FROM_MEMORY``, and what is special about the row's figures."""


FROM_MEMORY: Final = "entered from memory"
"""Where every figure of the table comes from: nobody has compared it with a document."""
_ROWS: Final = """
k80           | -    | Kepler    |  12 |  240 |    4.4 | PCIe   | - | one of two devices; FP32
m40           | -    | Maxwell   |  12 |  288 |    6.8 | PCIe   | - | FP32
m60           | -    | Maxwell   |   8 |  160 |    4.8 | PCIe   | - | one of two devices; FP32
p4            | -    | Pascal    |   8 |  192 |    5.5 | PCIe   | - | FP32
p40           | -    | Pascal    |  24 |  346 |   11.8 | PCIe   | - | FP32
p100          | sxm  | Pascal    |  16 |  732 |   21.2 | NVLink | - | FP16
p100          | pcie | Pascal    |  16 |  732 |   18.7 | PCIe   | - | FP16
v100          | sxm  | Volta     |  16 |  900 |    125 | NVLink | - | FP16
v100          | sxm  | Volta     |  32 |  900 |    125 | NVLink | - | FP16
v100          | pcie | Volta     |  16 |  900 |    112 | PCIe   | - | FP16
v100          | pcie | Volta     |  32 |  900 |    112 | PCIe   | - | FP16
v100s         | -    | Volta     |  32 | 1134 |    130 | PCIe   | - | FP16
t4            | -    | Turing    |  16 |  320 |     65 | PCIe   | - | FP16
rtx 6000      | -    | Turing    |  24 |  672 |    130 | PCIe   | - | FP16
rtx 8000      | -    | Turing    |  48 |  672 |    130 | PCIe   | - | FP16
a2            | -    | Ampere    |  16 |  200 |     18 | PCIe   | - | -
a10           | -    | Ampere    |  24 |  600 |    125 | PCIe   | - | -
a10g          | -    | Ampere    |  24 |  600 |     70 | PCIe   | - | -
a16           | -    | Ampere    |  16 |  200 |   17.9 | PCIe   | - | one of four devices
a30           | -    | Ampere    |  24 |  933 |    165 | NVLink | y | -
a40           | -    | Ampere    |  48 |  696 |  149.7 | NVLink | - | -
a100          | sxm  | Ampere    |  40 | 1555 |    312 | NVLink | y | -
a100          | sxm  | Ampere    |  80 | 2039 |    312 | NVLink | y | -
a100          | pcie | Ampere    |  40 | 1555 |    312 | PCIe   | y | -
a100          | pcie | Ampere    |  80 | 1935 |    312 | PCIe   | y | -
a800          | sxm  | Ampere    |  80 | 2039 |    312 | NVLink | y | -
a800          | pcie | Ampere    |  80 | 1935 |    312 | PCIe   | y | -
a4000         | -    | Ampere    |  16 |  448 |   76.7 | PCIe   | - | -
a5000         | -    | Ampere    |  24 |  768 |  111.1 | NVLink | - | -
a6000         | -    | Ampere    |  48 |  768 |  154.8 | NVLink | - | -
rtx 3090      | -    | Ampere    |  24 |  936 |     71 | NVLink | - | -
l2            | -    | Ada       |  24 |  300 |   96.5 | PCIe   | - | -
l4            | -    | Ada       |  24 |  300 |    121 | PCIe   | - | -
l20           | -    | Ada       |  48 |  864 |  119.5 | PCIe   | - | -
l40           | -    | Ada       |  48 |  864 |    181 | PCIe   | - | -
l40s          | -    | Ada       |  48 |  864 |    362 | PCIe   | - | -
rtx 6000 ada  | -    | Ada       |  48 |  960 |    364 | PCIe   | - | -
rtx 4090      | -    | Ada       |  24 | 1008 |    165 | PCIe   | - | -
h100          | sxm  | Hopper    |  80 | 3350 |    989 | NVLink | y | -
h100          | pcie | Hopper    |  80 | 2000 |    756 | PCIe   | y | -
h100          | nvl  | Hopper    |  94 | 3900 |    835 | NVLink | y | -
h800          | sxm  | Hopper    |  80 | 3350 |    989 | NVLink | y | -
h800          | pcie | Hopper    |  80 | 2000 |    756 | PCIe   | y | -
h20           | -    | Hopper    |  96 | 4000 |    148 | NVLink | y | -
h200          | sxm  | Hopper    | 141 | 4800 |    989 | NVLink | y | -
h200          | nvl  | Hopper    | 141 | 4800 |    835 | NVLink | y | -
gh200         | -    | Hopper    |  96 | 4000 |    989 | NVLink | y | -
gh200         | -    | Hopper    | 144 | 4900 |    989 | NVLink | y | -
b200          | -    | Blackwell | 180 | 7700 |   2250 | NVLink | y | -
gb200         | -    | Blackwell | 186 | 8000 |   2500 | NVLink | y | -
b300          | -    | Blackwell | 270 | 7700 |   2250 | NVLink | y | -
gb300         | -    | Blackwell | 279 | 8000 |   2500 | NVLink | y | -
rtx 5090      | -    | Blackwell |  32 | 1792 |    209 | PCIe   | - | -
rtx pro 6000  | -    | Blackwell |  96 | 1597 |    500 | PCIe   | y | derived from FP4
mi100         | -    | CDNA      |  32 | 1228 |    184 | xGMI   | - | FP16
mi210         | -    | CDNA 2    |  64 | 1638 |    181 | xGMI   | - | -
mi250         | -    | CDNA 2    |  64 | 1638 |    181 | xGMI   | - | one of two devices
mi250x        | -    | CDNA 2    |  64 | 1638 |    191 | xGMI   | - | one of two devices
mi300a        | -    | CDNA 3    | 128 | 5300 |    980 | xGMI   | - | -
mi300x        | -    | CDNA 3    | 192 | 5300 |   1307 | xGMI   | - | -
mi325x        | -    | CDNA 3    | 256 | 6000 |   1307 | xGMI   | - | -
mi350x        | -    | CDNA 4    | 288 | 8000 |   2306 | xGMI   | - | -
mi355x        | -    | CDNA 4    | 288 | 8000 |   2516 | xGMI   | - | -
910a          | -    | Da Vinci  |  32 | 1200 |    256 | HCCS   | - | FP16
910b          | -    | Da Vinci  |  64 | 1600 |    313 | HCCS   | - | of 910B3; FP16
910b4         | -    | Da Vinci  |  32 |  800 |    280 | HCCS   | - | FP16
310p          | -    | Da Vinci  |  24 |  204 |     70 | PCIe   | - | of Atlas 300I Pro; FP16
"""


def _model(line: str) -> Model:
    words, form, generation, memory, bandwidth, compute, link, mig, note = (
        cell.strip() for cell in line.split("|")
    )
    return Model(
        words=frozenset(words.split()),
        form=None if form == "-" else form,
        generation=generation,
        memory_gb=int(memory),
        bandwidth_gb_per_s=int(bandwidth),
        compute_tflops=float(compute),
        link=link,
        has_mig=mig == "y",
        source=FROM_MEMORY if note == "-" else f"{FROM_MEMORY}; {note}",
    )


MODELS: Final = tuple(_model(line) for line in _ROWS.strip().splitlines())
"""Every model, by maker and generation."""
