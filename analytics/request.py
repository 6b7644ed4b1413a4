"""A request for capacity, as a person writes it: ``gpus=4,workers=2,cpu=32,model=H100|A100``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Final

from analytics.mig_geometry import FOUR_SLICES, SEVEN_SLICES, short_name
from steward.errors import UsageError
from steward.units import GPU_MILLI

EXAMPLE: Final = "gpus=4,workers=2,cpu=32,memory=64Gi,model=H100|A100"
MOST_GPUS: Final = 64
"""Of one worker: no node has more."""
MOST_WORKERS: Final = 100_000
MILLI_PER_CORE: Final = 1_000
MOST_CPU_MILLI: Final = 10**9
MEMORY_UNITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
        "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    }
)  # fmt: skip
"""As Kubernetes writes quantities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Workers that each need their part on one node."""

    worker_count: int = 1
    gpu_count: int = 1
    """Devices of one worker; with ``mig_profile``, instances."""
    gpu_milli: int = GPU_MILLI
    """Of each device: less than a whole one shares it."""
    cpu_milli: int | None = None
    """Of one worker; None: not asked about."""
    memory_bytes: int | None = None
    """As ``cpu_milli``."""
    models: tuple[str, ...] = ()
    """Any of these; empty: any model."""
    mig_profile: str | None = None
    """Instances of this profile instead of devices."""


def request_from(text: str) -> Request:
    """Return the request that a text writes.

    Raises:
        UsageError: a part is unknown, given twice or not what it should be; the message names it.
    """
    asked = Request()
    seen: set[str] = set()
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or name not in _PARTS:
            raise _wrong(part.strip(), f"is not one of {', '.join(f'{each}=' for each in _PARTS)}")
        if name in seen:
            raise _wrong(part.strip(), f"gives {name} twice")
        seen.add(name)
        asked = _PARTS[name](asked, part.strip(), value)
    if asked.mig_profile is not None and asked.gpu_milli != GPU_MILLI:
        raise _wrong(f"mig={asked.mig_profile}", "cannot be shared: give gpus as a whole number")
    if not {"gpus", "mig"} & seen:
        raise _wrong(text.strip(), "does not say how many GPUs a worker needs")
    return asked


def _wrong(part: str, why: str) -> UsageError:
    return UsageError(f"--fits: {part!r} {why}", hint=f"write it like {EXAMPLE} or mig=1g.10gb")


def _number(part: str, value: str) -> Decimal:
    try:
        found = Decimal(value)
    except InvalidOperation:
        found = Decimal("NaN")
    if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,3})?", value) or found <= 0:
        raise _wrong(part, "is not a number above 0 with at most three decimals")
    return found


def _whole(part: str, value: str, *, most: int) -> int:
    found = _number(part, value)
    if found != int(found) or found > most:
        raise _wrong(part, f"is not a whole number from 1 to {most}")
    return int(found)


def _gpus(asked: Request, part: str, value: str) -> Request:
    found = _number(part, value)
    if found < 1:
        return replace(asked, gpu_count=1, gpu_milli=int(found * GPU_MILLI))
    return replace(asked, gpu_count=_whole(part, value, most=MOST_GPUS))


def _workers(asked: Request, part: str, value: str) -> Request:
    return replace(asked, worker_count=_whole(part, value, most=MOST_WORKERS))


def _cpu(asked: Request, part: str, value: str) -> Request:
    if value.endswith("m"):
        return replace(asked, cpu_milli=_whole(part, value.removesuffix("m"), most=MOST_CPU_MILLI))
    return replace(asked, cpu_milli=int(_number(part, value) * MILLI_PER_CORE))


def _memory(asked: Request, part: str, value: str) -> Request:
    found = re.fullmatch(r"(?P<number>[0-9.]+)(?P<unit>[A-Za-z]*)", value)
    if found is None or found["unit"] not in MEMORY_UNITS:
        raise _wrong(part, "is not an amount of memory such as 64Gi")
    amount = _number(part, found["number"]) * MEMORY_UNITS[found["unit"]]
    return replace(asked, memory_bytes=int(amount))


def _models(asked: Request, part: str, value: str) -> Request:
    names = tuple(each.strip() for each in value.split("|"))
    if not all(names):
        raise _wrong(part, "names an empty model")
    return replace(asked, models=names)


def _mig(asked: Request, part: str, value: str) -> Request:
    if not any(short_name(value, board) for board in (SEVEN_SLICES, FOUR_SLICES)):
        raise _wrong(part, "is not a MIG profile such as 1g.10gb")
    return replace(asked, mig_profile=value)


_PARTS: Final[Mapping[str, Callable[[Request, str, str], Request]]] = MappingProxyType(
    {
        "gpus": _gpus,
        "workers": _workers,
        "cpu": _cpu,
        "memory": _memory,
        "model": _models,
        "mig": _mig,
    }
)


def text_of(asked: Request) -> str:
    """Return a request as ``request_from`` reads it."""
    parts = [f"workers={asked.worker_count}"]
    if asked.gpu_milli < GPU_MILLI:
        parts.append(f"gpus={asked.gpu_milli / GPU_MILLI:g}")
    else:
        parts.append(f"gpus={asked.gpu_count}")
    if asked.mig_profile is not None:
        parts.append(f"mig={asked.mig_profile}")
    if asked.cpu_milli is not None:
        parts.append(f"cpu={asked.cpu_milli}m")
    if asked.memory_bytes is not None:
        parts.append(f"memory={asked.memory_bytes}")
    if asked.models:
        parts.append(f"model={'|'.join(asked.models)}")
    return ",".join(parts)
