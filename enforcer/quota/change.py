"""One difference between what is wanted and what the cluster has, and how to mend and unmend it."""

from __future__ import annotations

from dataclasses import dataclass

from enforcer.actuators.fields import Change, patch_of, target_of, text_at
from enforcer.gateway.port import KubernetesObject, Target, Verb, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One number that is not as the file says."""

    subject: str
    """What a person calls it, such as ``ClusterQueue vision``."""
    tenant_id: str
    gpu_model: str
    """Joined by commas where the scheduler does not tell models apart."""
    field: str
    live: str | None
    """As the cluster has it; None: not set."""
    wanted: str | None
    """None: it should not be set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """One object to be written, whole in its effect: all its differences or none."""

    differences: tuple[Difference, ...]
    """At least one."""
    holder: Target
    changes: tuple[Change, ...]
    resource_version: str | None
    created: KubernetesObject | None
    """The object where there is none yet; undone it stays, and limits nothing."""

    @property
    def write(self) -> Write:
        """Return what carries it out."""
        if self.created is not None:
            return Write(
                verb=Verb.CREATE, target=self.holder, body=self.created, resource_version=None
            )
        return Write(
            verb=Verb.PATCH,
            target=self.holder,
            body=patch_of(self.changes),
            resource_version=self.resource_version,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that keeps a wish from being written."""

    tenant_id: str
    subject: str
    message: str
    hint: str


def changed(
    found: KubernetesObject, changes: tuple[Change, ...], differences: tuple[Difference, ...]
) -> QuotaChange:
    """Return the change of an object that is there."""
    return QuotaChange(
        differences=differences,
        holder=target_of(found),
        changes=changes,
        resource_version=text_at(found, "metadata", "resourceVersion"),
        created=None,
    )


def name_of(found: KubernetesObject) -> str:
    """Return the name of an object."""
    return text_at(found, "metadata", "name") or ""
