"""Labels as Prometheus kept them: which belong to the target, and one object for each label set.

A server adds the target's labels (``instance``, ``job``, those of discovery) to what an exporter
said, and renames what collides to ``exported_…``. For the rows only what the exporter said counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.backfill.answers import ActiveTarget
from collector.discovery import target_url
from collector.sources.exposition_labels import Labels
from steward.errors import UsageError

_NAME: Final = "__name__"
_OWN_POD: Final = ("pod", "namespace", "container")
_FORGET_ABOVE: Final = 4
"""Label sets are forgotten when so many times more are kept than a span uses."""


class TargetKey(NamedTuple):
    """What tells targets apart on a server."""

    job: str
    instance: str


def scrape_urls(targets: Iterable[ActiveTarget]) -> dict[TargetKey, str]:
    """Return the addresses of the targets that a server scrapes now."""
    urls: dict[TargetKey, str] = {}
    for target in targets:
        with suppress(UsageError):
            urls[target_key(target.labels)] = target_url(target.scrape_url)
    return urls


def likely_url(target: TargetKey) -> str:
    """Return the address a target of the past most likely had: a server keeps only its host."""
    try:
        return target_url(target.instance)
    except UsageError:
        return target.instance or target.job or "prometheus"


def metric_name(labels: Mapping[str, str]) -> str:
    """Return the name of a series, which Prometheus keeps among its labels."""
    return labels.get(_NAME, "")


def target_key(labels: Mapping[str, str]) -> TargetKey:
    """Return the target of a series; a federated series names it as ``exported_…``."""
    return TargetKey(
        job=labels.get("exported_job") or labels.get("job", ""),
        instance=labels.get("exported_instance") or labels.get("instance", ""),
    )


def job_label(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return under which name a series carries its target's job, and the job."""
    name = "exported_job" if labels.get("exported_job") else "job"
    return name, labels.get(name, "")


@dataclass(slots=True)
class Interner:
    """Gives series with the same labels the same object, as the text parser does."""

    known: dict[tuple[TargetKey, tuple[tuple[str, str], ...]], Labels] = field(default_factory=dict)
    used: set[tuple[TargetKey, tuple[tuple[str, str], ...]]] = field(default_factory=set)
    target_labels: dict[TargetKey, Mapping[str, str]] = field(default_factory=dict)
    """By target, the labels of its ``up``: those that discovery gave it."""

    def labels(self, metric: Mapping[str, str], target: TargetKey) -> Labels:
        """Return what the exporter said of a series.

        The exporter's own pod is left out: discovery puts it into ``pod`` where the exporter named
        none, and it never holds a device. The address is the exporter's, also behind a federation.
        """
        pairs = {name: value for name, value in metric.items() if name != _NAME}
        own = self.target_labels.get(target, {})
        if "pod" in own and pairs.get("pod") == own["pod"]:
            for name in _OWN_POD:
                if pairs.get(name) == own.get(name):
                    pairs.pop(name, None)
        if target.instance:
            pairs["instance"] = target.instance
        key = (target, tuple(sorted(pairs.items())))
        self.used.add(key)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = Labels(pairs)
        return found

    def forget_unused(self) -> None:
        """Forget label sets that are no longer shown, once there are many of them."""
        if len(self.known) > _FORGET_ABOVE * max(len(self.used), 64):
            self.known = {key: self.known[key] for key in self.used}
        self.used = set()
