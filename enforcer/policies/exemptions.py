"""Whether a workload is left alone: by a rule, by a parent's rule, or by a grant with an end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from enforcer.facts import Exemption, Workload
from enforcer.policies.matching import ANY_POLICY, Spoken
from enforcer.policies.model import Effect
from enforcer.policies.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Exempt:
    """Why a workload is left alone, and until when; None: no end is known."""

    reason: Reason
    until_at: datetime | None


def exempt(workload: Workload, found: Spoken, exemptions: Iterable[Exemption]) -> Exempt | None:
    """Return why a workload is left alone; None: it is not.

    Args:
        workload: of which ``found`` speaks.
        found: a grant for its policy, or for one above it, holds.
        exemptions: those that hold now.
    """
    if found.rule.effect is Effect.EXEMPT:
        return Exempt(reason=Reason.EXEMPT_BY_RULE, until_at=None)
    if found.exempting is not None:
        return Exempt(reason=Reason.EXEMPT_BY_PARENT, until_at=None)
    names = {ANY_POLICY, found.policy.name, *(one.name for one in found.ancestors)}
    ends = [
        one.period.until_at for one in exemptions if one.policy in names and _covers(one, workload)
    ]
    return Exempt(reason=Reason.EXEMPT_BY_GRANT, until_at=max(ends)) if ends else None


def _covers(exemption: Exemption, workload: Workload) -> bool:
    """Tell whether it speaks of the workload, or of any device that the workload holds."""
    devices = () if workload.evidence is None else workload.evidence.devices
    keys: dict[str, set[str | None]] = {
        "workload": {workload.uid},
        "tenant": {workload.tenant_id},
        "namespace": {workload.namespace, f"{workload.cluster}/{workload.namespace}"},
        "device": {device.device_uuid for device in devices},
    }
    return exemption.scope_key in keys.get(exemption.scope_kind, set())
