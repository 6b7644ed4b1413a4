"""Volcano's Command objects: its controller obeys one and removes it; the job's spec stays."""

from __future__ import annotations

import hashlib
from typing import Final

from enforcer.gateway.port import KubernetesObject, Target, Verb, Write

COMMAND_API: Final = "bus.volcano.sh/v1alpha1"
ABORT: Final = "AbortJob"
RESUME: Final = "ResumeJob"
ABORTED_PHASES: Final = frozenset({"Aborting", "Aborted"})
_DIGEST_LENGTH: Final = 16


def command(word: str, *, subject: Target, action_id: str) -> Write:
    """Return the creation of a Command; the same word of the same act has the same name."""
    digest = hashlib.sha256(f"{word} {action_id}".encode()).hexdigest()[:_DIGEST_LENGTH]
    name = f"steward-{digest}"
    job: KubernetesObject = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "name": subject.name,
        "uid": subject.uid,
        "controller": True,
    }
    body: KubernetesObject = {
        "apiVersion": COMMAND_API,
        "kind": "Command",
        "metadata": {"name": name, "namespace": subject.namespace, "ownerReferences": [job]},
        "action": word,
        "target": job,
        "reason": "GpuSteward",
    }
    target = Target(
        api_version=COMMAND_API, kind="Command", namespace=subject.namespace, name=name, uid=None
    )
    return Write(verb=Verb.CREATE, target=target, body=body, resource_version=None)
