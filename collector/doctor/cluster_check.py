"""The whole look at one cluster: who is asked, what was found, which exporters it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from collector.cluster_watch import origin_of
from collector.discovery import ScrapeTarget
from collector.discovery_kubernetes import ExporterTargets
from collector.discovery_labels import SourceState
from collector.doctor.cluster import ClusterView, read_cluster
from collector.doctor.cluster_findings import cluster_findings, node_views
from collector.doctor.codes import Code
from collector.doctor.finding import Finding, fault
from collector.doctor.fleet import NodeView
from collector.exporter_selection import selections
from collector.lifecycle.ownership_rules import ownership_rules
from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError
from collector.sources.kubernetes.permissions import VERBS, MissingPermission, cluster_role
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import RESOURCES
from steward.clock import Clock
from steward.errors import SettingsError
from steward.settings import Settings

ROLE_NAME: Final = "steward-collector"
_ACCOUNT_PREFIX: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCheck:
    """What was found in a cluster."""

    findings: tuple[Finding, ...] = ()
    nodes: tuple[NodeView, ...] | None = None
    """None where they are not known."""
    targets: tuple[ScrapeTarget, ...] = ()
    """Exporters that the cluster names."""
    states: tuple[SourceState, ...] = ()
    """How it goes with each selection of exporters."""
    cluster_role: str | None = None
    binding_command: str | None = None


def check_cluster(settings: Settings, *, clock: Clock) -> ClusterCheck:
    """Return what the collector can and cannot see of the cluster that these settings mean.

    Raises:
        SettingsError: rules of ownership or selections of exporters are wrong.
    """
    rules = ownership_rules(settings.ownership)
    exporters = ExporterTargets(selections(settings.kubernetes.exporters))
    subject = "kubernetes.access"
    try:
        origin = origin_of(settings.kubernetes)
        subject = str(origin)
        with closing(ApiAccess(origin)) as access:
            view = read_cluster(access, exporters=exporters, rules=rules, clock=clock)
    except (ApiError, SettingsError) as error:
        unread = fault(Code.CLUSTER_UNREADABLE, subject, message=error.message, remedy=error.hint)
        return ClusterCheck(findings=(unread,))
    return _checked(view, exporters=exporters, clock=clock)


def _checked(view: ClusterView, *, exporters: ExporterTargets, clock: Clock) -> ClusterCheck:
    wanted = (*RESOURCES, *exporters.resources)
    return ClusterCheck(
        findings=tuple(cluster_findings(view, now=clock.now())),
        nodes=node_views(view),
        targets=exporters.look(),
        states=exporters.states(),
        cluster_role=needed_role(view.missing, resources=wanted) if view.missing else None,
        binding_command=binding_command(view.account) if view.missing else None,
    )


def needed_role(missing: Iterable[MissingPermission], *, resources: Sequence[Resource]) -> str:
    """Return the ClusterRole that permits all that is followed, and what else was missed."""
    rules = [
        f'  - apiGroups: ["{one.group}"]\n'
        f"    resources: [{one.resource}]\n"
        f"    verbs: [{one.verb}]\n"
        for one in missing
        if one.verb not in VERBS
    ]
    return "".join([cluster_role(resources, name=ROLE_NAME), *rules])


def binding_command(account: str | None) -> str | None:
    """Return the command that binds the role to an account; None where the account is unknown."""
    if account is None:
        return None
    name = account.removeprefix(_ACCOUNT_PREFIX)
    subject = f"--user={account}" if name == account else f"--serviceaccount={name}"
    return f"kubectl create clusterrolebinding {ROLE_NAME} --clusterrole={ROLE_NAME} {subject}"
