"""A quota file against the live cluster, whichever scheduler keeps its quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from enforcer.gateway.port import Gateway, KubernetesObject
from enforcer.quota import kueue, queues, resource_quota
from enforcer.quota.change import QuotaChange, Trouble
from enforcer.quota.model import QuotaFile, Scheduler

Compared = tuple[tuple[QuotaChange, ...], tuple[Trouble, ...]]
_VERSIONS: Final[Mapping[Scheduler, tuple[tuple[str, str], ...]]] = {
    Scheduler.KUEUE: (
        ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue"),
    ),
    Scheduler.KAI: (("scheduling.run.ai/v2", "Queue"),),
    Scheduler.VOLCANO: (("scheduling.volcano.sh/v1beta1", "Queue"),),
    Scheduler.RESOURCE_QUOTA: (("v1", "ResourceQuota"),),
}
"""Where each keeps its quotas, newest version first."""
_CHANGES: Final[Mapping[Scheduler, Callable[[QuotaFile, Sequence[KubernetesObject]], Compared]]] = {
    Scheduler.KUEUE: kueue.changes,
    Scheduler.KAI: queues.changes,
    Scheduler.VOLCANO: queues.changes,
    Scheduler.RESOURCE_QUOTA: resource_quota.changes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the cluster has otherwise than the file says, and what cannot be said there."""

    changes: tuple[QuotaChange, ...]
    troubles: tuple[Trouble, ...]

    @property
    def is_in_order(self) -> bool:
        """Tell whether nothing is left to do or to tell."""
        return not (self.changes or self.troubles)


def compared(file: QuotaFile, gateway: Gateway) -> Comparison:
    """Return what differs, by team.

    Raises:
        ClusterError: the cluster cannot be read.
    """
    changes, troubles = _CHANGES[file.scheduler](file, _live(file, gateway))
    return Comparison(changes=changes, troubles=troubles)


def _live(file: QuotaFile, gateway: Gateway) -> Sequence[KubernetesObject]:
    for api_version, kind in _VERSIONS[file.scheduler]:
        found = gateway.list(api_version=api_version, kind=kind, namespace=None)
        if found:
            return found
    return ()
