"""The watched cluster beside the scrapes: one thread, which ends with the collector."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final, Protocol

from collector.discovery_kubernetes import ExporterTargets
from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.change import Change
from collector.sources.kubernetes.credentials import (
    IN_CLUSTER_VARIABLE,
    KUBECONFIG_VARIABLE,
    USUAL_KUBECONFIG,
    Origin,
)
from collector.sources.kubernetes.feed import KubernetesFeed
from collector.sources.kubernetes.health import ResourceHealth
from collector.sources.kubernetes.owner_metadata import OwnerMetadata
from collector.sources.kubernetes.resources import RESOURCES
from steward.clock import Clock
from steward.errors import SettingsError
from steward.settings import KubernetesSettings

END_PATIENCE_S: Final = 15.0


class Apply(Protocol):
    """Takes the cluster's changes, one at a time."""

    def __call__(self, change: Change) -> None:
        """Take one."""
        ...


def origin_of(settings: KubernetesSettings) -> Origin:
    """Return where the connection is described.

    Raises:
        SettingsError: the pod's account is asked for, and this is no pod.
    """
    if settings.access == "in-cluster":
        if not os.environ.get(IN_CLUSTER_VARIABLE):
            raise SettingsError(
                "kubernetes.access is in-cluster, and this process runs in no pod",
                hint="use kubernetes.access = kubeconfig outside the cluster",
            )
        return Origin()
    named = settings.kubeconfig
    if settings.access == "kubeconfig" and named is None:
        # Named, so that inside a pod the file is used all the same.
        named = Path(os.environ.get(KUBECONFIG_VARIABLE) or USUAL_KUBECONFIG)
    return Origin(kubeconfig=named, context=settings.context)


class ClusterLink:
    """The connection to an API server, and what is asked of it one by one.

    Raises:
        SourceError: its description is missing or broken; the server itself is not asked.
    """

    def __init__(self, origin: Origin) -> None:
        """Load the credentials."""
        self.access = ApiAccess(origin)
        self._single = ApiAccess(origin)
        self.metadata = OwnerMetadata(self._single)

    def close(self) -> None:
        """End what was opened for single questions; a feed ends its own."""
        self._single.close()


class ClusterWatch:
    """Follows a cluster in a thread of its own.

    Args:
        link: the API server; closed at the end.
        apply: takes every change of what is told in rows.
        exporters: takes those of the exporters to scrape.
        clock: dates what is observed.
    """

    def __init__(
        self, link: ClusterLink, *, apply: Apply, exporters: ExporterTargets, clock: Clock
    ) -> None:
        """Prepare; nothing is asked yet."""
        self._link = link
        self._feed = KubernetesFeed(link.access, (*RESOURCES, *exporters.resources), clock=clock)
        self._apply = apply
        self._exporters = exporters
        self._stop = Event()
        self._failure: BaseException | None = None
        self._thread: Thread | None = None

    def health(self) -> Sequence[ResourceHealth]:
        """Return how the reading of each kind goes."""
        return self._feed.health()

    def start(self, *, on_end: Callable[[], None]) -> None:
        """Begin to follow; ``on_end`` is called by the thread when it ends, for whatever reason."""
        self._thread = Thread(target=self._run, args=(on_end,), name="cluster", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread.

        Raises:
            BaseException: what the thread failed of, where it did.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=END_PATIENCE_S)
        if self._failure is not None:
            raise self._failure

    def _run(self, on_end: Callable[[], None]) -> None:
        try:
            self._feed.run(self._stop, self._take)
        except BaseException as failure:  # noqa: BLE001 - raised again by ``stop``, in its thread
            self._failure = failure
        finally:
            self._link.close()
            on_end()

    def _take(self, change: Change) -> None:
        if self._exporters.follows(change.resource):
            self._exporters.apply(change)
        else:
            self._apply(change)
