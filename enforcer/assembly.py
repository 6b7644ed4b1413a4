"""From settings to ports: the cluster, the ledger, the lease, the ways to owners."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from enforcer.calls import CountedGateway
from enforcer.controller import Controller
from enforcer.desk.office import Desk
from enforcer.desk.tending import DeskTender
from enforcer.entries import Entries
from enforcer.gateway.dry_run import DryRunGateway
from enforcer.gateway.port import Gateway
from enforcer.hands import INTERRUPTED_AFTER, Hands, Reach
from enforcer.lease import Elector, LeaseTerms
from enforcer.ledger import Ledger
from enforcer.metrics import EnforcerMetrics
from enforcer.notify import EventChannel
from enforcer.notify_apprise import apprise_channels
from enforcer.sight import Stored, WarehouseSight
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import SettingsError
from steward.ports import StateLog, Writer
from steward.settings import Settings
from steward.settings.model import KubernetesSettings

LEASES_UNTIL_SETTLED = 3


class Store(Stored, StateLog, Writer, Protocol):
    """The warehouse as the enforcer uses it."""


Connect = Callable[[KubernetesSettings, Callable[[], bool]], Gateway]
"""Makes a gateway to the cluster that settings mean, fenced by a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica's parts."""

    controller: Controller
    elector: Elector
    lease: timedelta


def connect(settings: KubernetesSettings, is_leading: Callable[[], bool]) -> Gateway:
    """Return the gateway to the real cluster.

    Raises:
        SettingsError: no cluster is meant.
        ClusterError: its description is missing or broken.
    """
    if settings.access == "off":
        raise SettingsError(
            "no Kubernetes cluster is named: kubernetes.access is off",
            hint="set kubernetes.access to in-cluster, kubeconfig or auto",
        )
    from enforcer.gateway.live import LiveGateway  # noqa: PLC0415  # an optional part
    from enforcer.gateway.live_access import LiveAccess, Origin  # noqa: PLC0415  # same

    is_in_cluster = settings.access == "in-cluster" or (
        settings.access == "auto" and "KUBERNETES_SERVICE_HOST" in os.environ
    )
    origin = Origin(
        kubeconfig=settings.kubeconfig, context=settings.context, is_in_cluster=is_in_cluster
    )
    return LiveGateway(LiveAccess(origin), is_leading=is_leading)


@contextmanager
def open_store(settings: Settings) -> Iterator[Store]:
    """Open the warehouse for the length of a ``with`` block."""
    with open_warehouse(settings) as warehouse:
        yield warehouse


def reach_of(settings: Settings, *, is_dry_run: bool = False) -> Reach:
    """Return how far acts may reach."""
    own = settings.enforce
    undo_s = own.undo_after_s
    interrupted = max(INTERRUPTED_AFTER, timedelta(seconds=own.lease_s * LEASES_UNTIL_SETTLED))
    return Reach(
        kinds=frozenset(own.kinds),
        verify=timedelta(seconds=own.verify_s),
        interrupted_after=interrupted,
        undo_after=None if undo_s is None else timedelta(seconds=undo_s),
        low_priority_class=own.low_priority_class,
        is_dry_run=is_dry_run,
    )


def person() -> str:
    """Return who runs the command."""
    return getpass.getuser()


def person_hands(context: Context, store: Store, gateway: Gateway, *, is_dry_run: bool) -> Hands:
    """Return what a person's command acts with."""
    ledger = Ledger(store, cluster=context.settings.cluster, clock=context.clock, actor=person())
    return Hands(
        gateway=DryRunGateway(gateway) if is_dry_run else gateway,
        ledger=ledger,
        clock=context.clock,
        channels=(),
        reach=reach_of(context.settings, is_dry_run=is_dry_run),
    )


def replica(
    context: Context,
    store: Store,
    *,
    metrics: EnforcerMetrics,
    connected: Connect = connect,
) -> Replica:
    """Return the parts of one replica; nothing is asked of the cluster yet."""
    settings = context.settings
    entries = _EntriesOf(store, settings.cluster)
    elector = Elector(
        connected(settings.kubernetes, _always),
        terms_of(settings),
        clock=context.clock,
        monotonic=time.monotonic,
        above=entries.newest_fence,
    )
    fenced = connected(settings.kubernetes, elector.is_leading)
    gateway = CountedGateway(fenced, monotonic=time.monotonic, on_call=metrics.count_call)
    ledger = Ledger(
        store,
        cluster=settings.cluster,
        clock=context.clock,
        actor=terms_of(settings).identity,
        fence=elector.fence,
    )
    hands = Hands(
        gateway=gateway,
        ledger=ledger,
        clock=context.clock,
        channels=(EventChannel(gateway), *apprise_channels(settings.enforce.notify_urls)),
        reach=reach_of(settings),
    )
    sight = WarehouseSight(store, gateway=gateway, cluster=settings.cluster)
    tender = DeskTender(
        desk=Desk(state=store, clock=context.clock, actor=terms_of(settings).identity),
        quota_path=settings.enforce.quota_file,
    )
    controller = Controller(sight=sight, hands=hands, writer=store, metrics=metrics, tender=tender)
    lease = timedelta(seconds=settings.enforce.lease_s)
    return Replica(controller=controller, elector=elector, lease=lease)


def rehearsing(controller: Controller) -> Controller:
    """Return a controller that writes nothing to the cluster and leads nobody."""
    hands = controller.hands
    ledger = hands.ledger.without_fence()
    gateway = DryRunGateway(hands.gateway)
    reach = replace(hands.reach, is_dry_run=True)
    return replace(controller, hands=replace(hands, gateway=gateway, ledger=ledger, reach=reach))


def terms_of(settings: Settings) -> LeaseTerms:
    """Return which lease this process asks for, and under which name."""
    own = settings.enforce
    return LeaseTerms(
        namespace=own.lease_namespace,
        name=own.lease_name,
        identity=own.identity or f"{socket.gethostname()}-{os.getpid()}",
        length=timedelta(seconds=own.lease_s),
    )


def _always() -> bool:
    return True


class _EntriesOf:
    """Reads the newest fence of the ledger when a lease is taken."""

    def __init__(self, state: StateLog, cluster: str) -> None:
        self._state = state
        self._entries = Entries(cluster=cluster)

    def newest_fence(self) -> int:
        """Return the largest number of a leadership that recorded an act."""
        while rows := self._state.state_after("action", self._entries.newest_id):
            self._entries.add(rows)
        return self._entries.newest_fence
