"""Asks every target once, as the collector does, and keeps what it told for the checks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from collector.discovery import ScrapeTarget
from collector.doctor.finding import Finding, fault
from collector.doctor.target_view import TargetView
from collector.exporter_client import ExporterClient
from collector.normalize import NormalizedScrape, NormalizeState, normalize
from collector.reading import Target, exposition_of
from collector.scrape import FetchLimits, Page, Refusal, fetch, open_client
from collector.sources.exposition import Exposition
from steward.clock import Clock
from steward.ids import ClusterName

_DATE_STEP: Final = timedelta(seconds=1)
"""A Date header tells whole seconds, cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How targets are asked."""

    cluster: ClusterName
    limits: FetchLimits
    clock: Clock
    cluster_nodes: frozenset[str] = frozenset()
    """Names of the cluster's nodes."""
    again_after_s: float | None = None
    """Ask each target a second time after this long; None asks once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What all targets told, in their order."""

    views: tuple[TargetView, ...]
    findings: tuple[Finding, ...]
    """One for each target that could not be read."""


async def ask_targets(targets: Sequence[ScrapeTarget], *, asking: Asking) -> Asked:
    """Ask every target, all together."""
    async with open_client() as client:
        answers = await asyncio.gather(*(_ask(client, one, asking=asking) for one in targets))
    return Asked(
        views=tuple(one for one in answers if isinstance(one, TargetView)),
        findings=tuple(one for one in answers if isinstance(one, Finding)),
    )


async def _ask(
    client: ExporterClient, target: ScrapeTarget, *, asking: Asking
) -> TargetView | Finding:
    """Return what the target told; a finding where it could not be read."""
    own = Target(
        url=target.url,
        cluster=asking.cluster,
        state=NormalizeState(node=target.node, own_pod=target.pod),
    )
    asked_at = asking.clock.now()
    page = await fetch(client, target.url, limits=asking.limits)
    answered_at = asking.clock.now()
    read = _read(own, page, scraped_at=asked_at)
    if isinstance(read, Refusal):
        return _unread(target, read)
    exposition, scrape = read
    skew_s = None if isinstance(page, Refusal) else _skew_s(page, asked_at, answered_at)
    view = TargetView(
        target=target,
        exposition=exposition,
        scrape=scrape,
        skew_s=skew_s,
        cluster_nodes=asking.cluster_nodes,
    )
    if asking.again_after_s is None:
        return view
    await asyncio.sleep(asking.again_after_s)
    again_at = asking.clock.now()
    again = _read(own, await fetch(client, target.url, limits=asking.limits), scraped_at=again_at)
    return _unread(target, again) if isinstance(again, Refusal) else replace(view, second=again[1])


def _read(
    own: Target, page: Page | Refusal, *, scraped_at: datetime
) -> tuple[Exposition, NormalizedScrape] | Refusal:
    if isinstance(page, Refusal):
        return page
    exposition = exposition_of(own, page)
    if isinstance(exposition, Refusal):
        return exposition
    scrape = normalize(
        exposition, target=own.url, cluster=own.cluster, scraped_at=scraped_at, state=own.state
    )
    return exposition, scrape


def _unread(target: ScrapeTarget, refusal: Refusal) -> Finding:
    return fault(refusal.reason, target.url, message=refusal.message, remedy=refusal.hint)


def _skew_s(page: Page, asked_at: datetime, answered_at: datetime) -> float | None:
    """Return how far its clock is ahead for certain; None where it tells no time."""
    told_at = date_of(page.date)
    return None if told_at is None else certain_skew_s(told_at, asked_at, until_at=answered_at)


def date_of(header: str | None) -> datetime | None:
    """Return the instant of a Date header; None where there is none or it is none."""
    try:
        told = parsedate_to_datetime(header or "")
        return told.astimezone(UTC) if told.tzinfo is not None else told.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def certain_skew_s(told_at: datetime, asked_at: datetime, *, until_at: datetime) -> float:
    """Return the least that another clock can be ahead (negative: behind) of ours.

    Args:
        told_at: what it showed, in whole seconds.
        asked_at: ours, before it was asked.
        until_at: ours, after it answered.
    """
    if told_at > until_at:
        return (told_at - until_at).total_seconds()
    if told_at + _DATE_STEP < asked_at:
        return (told_at + _DATE_STEP - asked_at).total_seconds()
    return 0.0
