"""A quota file from text: every fault told at once, sums held against capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from enforcer.policies.document import document_from, text_at
from enforcer.policies.shapes import At, Fault, Schema
from enforcer.quota.fields import QUOTA
from enforcer.quota.model import QuotaFile, TeamQuota
from steward.errors import InputError
from steward.output import visible

HINT: Final = "see docs/quota.md"


def quota_from(text: str, *, name: str) -> QuotaFile:
    """Return the quotas that a text writes.

    Args:
        text: YAML, or JSON.
        name: of the file, for messages.

    Raises:
        InputError: names every fault and its place.
    """
    at = At()
    file = QUOTA.read(document_from(text, name=name), at)
    faults = at.faults or list(contradictions(file))
    if faults:
        told = (f"{fault.path or 'the file'}: {fault.text}" for fault in faults)
        lines = "".join(f"\n  {visible(one)}" for one in told)
        raise InputError(f"{name} is refused:{lines}", hint=HINT)
    return file


def file_at(path: Path) -> QuotaFile:
    """Return the quota file at a path.

    Raises:
        InputError: it cannot be read, or something is wrong with it.
    """
    text = text_at(path, hint="name a quota file; see docs/quota.md")
    return quota_from(text, name=str(path))


def quota_schema() -> Schema:
    """Return the JSON Schema of a quota file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Steward quota file",
        **QUOTA.schema(),
    }


def contradictions(file: QuotaFile) -> Iterator[Fault]:
    """Yield what cannot be true at once, by place."""
    yield from _twice("models", (one.gpu_model for one in file.models))
    yield from _twice("teams", (one.tenant_id for one in file.teams))
    yield from _twice("teams, as queue", (one.queue for one in file.teams))
    yield from _twice("priorities", file.priorities)
    yield from _twice("ceilings", (f"{c.tenant_id}/{c.workload_class}" for c in file.ceilings))
    for team in file.teams:
        yield from _of_team(file, team)
    for ceiling in file.ceilings:
        if ceiling.highest not in file.priorities:
            yield Fault("ceilings", f"{ceiling.highest!r} is not in the list of priorities")
    yield from _beyond_capacity(file)


def _twice(path: str, names: Iterable[str]) -> Iterator[Fault]:
    for name, count in sorted(Counter(names).items()):
        if count > 1:
            yield Fault(path, f"{name!r} is written {count} times")


def _of_team(file: QuotaFile, team: TeamQuota) -> Iterator[Fault]:
    path = f"teams.{team.tenant_id}"
    yield from _twice(path, (share.gpu_model for share in team.shares))
    for share in team.shares:
        if file.model(share.gpu_model) is None:
            yield Fault(path, f"{share.gpu_model!r} is not in the list of models")
        lend = share.lend_gpu_count
        if lend is not None and lend > share.guaranteed_gpu_count:
            yield Fault(
                path,
                f"lends {lend} {share.gpu_model} of a guarantee of {share.guaranteed_gpu_count}",
            )


def _beyond_capacity(file: QuotaFile) -> Iterator[Fault]:
    """Yield models whose guarantees cannot all be kept: no share of them would be fair."""
    for model in file.models:
        promised = sum(
            share.guaranteed_gpu_count
            for team in file.teams
            for share in team.shares
            if share.gpu_model == model.gpu_model
        )
        if model.capacity_gpu_count is not None and promised > model.capacity_gpu_count:
            yield Fault(
                "teams",
                f"{promised} {model.gpu_model} are guaranteed, but there are "
                f"{model.capacity_gpu_count}: they cannot all be kept",
            )
