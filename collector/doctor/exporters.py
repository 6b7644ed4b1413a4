"""What one exporter's answer lacks; pure.

Every check reads the normalised rows, so that it holds for all vendors and names alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from collector.doctor.agent_words import agent_findings, is_driver_away
from collector.doctor.codes import Code
from collector.doctor.finding import (
    Finding,
    counted,
    fault,
    fine,
    gap,
    lasting,
    named,
    note,
    share,
)
from collector.doctor.holders import holder_findings
from collector.doctor.measures import measure_findings
from collector.doctor.target_view import TargetView, texts
from collector.normalize.identity import target_host
from collector.normalize.metric import MEASURES
from steward.units import MILLIS_PER_SECOND

SKEW_LIMIT_S: Final = 5.0
"""From here on a sample may land in another interval than its neighbours of other nodes."""
OLD_LIMIT_S: Final = 120.0
"""Eight intervals by default: nothing refreshes so seldom that is meant to be watched."""
_OWN_METRICS: Final = ("go_", "process_", "promhttp_", "python_", "steward_agent_")
"""Begin the names with which exporters speak of themselves."""
_HOST_LABELS: Final = ("Hostname", "hostname", "node")


def exporter_findings(view: TargetView) -> list[Finding]:
    """Return what this target lacks and what is odd about it.

    A target without a single device is a FAULT and not looked at further.
    """
    if view.device_count == 0:
        return [_no_devices(view)]
    return [finding for check in _CHECKS for finding in check(view)]


def complete_finding(view: TargetView) -> Finding:
    """Return what is to be said of a target that lacks nothing that counts."""
    devices = counted(view.device_count, "device")
    return fine(Code.TARGET_COMPLETE, view.url, message=f"{devices}, all that reports need")


def _no_devices(view: TargetView) -> Finding:
    if is_driver_away(view):
        what = "the agent answers, and the driver does not"
        remedy = "see that nvidia-smi works on that machine, then look into the agent's log"
    else:
        names = named(view.names) or "none"
        what = f"it answers with {counted(len(view.exposition.samples), 'sample')}, none of them "
        what += f"of a GPU; names it has: {names}"
        remedy = "give the address of a GPU exporter, usually port 9400, and see that it finds its "
        remedy += "GPUs"
    return fault(Code.NO_DEVICES, view.url, message=what, remedy=remedy)


def _uuid_absent(view: TargetView) -> Iterator[Finding]:
    unnamed = [uuid for uuid in view.uuids if "/" in uuid]
    if unnamed:
        yield gap(
            Code.UUID_ABSENT,
            view.url,
            message=f"no UUID for {share(len(unnamed), view.device_count, 'device')}: they are "
            "known by node and index, which change places when a device fails",
            remedy="see that the exporter prints UUIDs (label UUID, gpu_uuid or vdie_id)",
        )


def _model_absent(view: TargetView) -> Iterator[Finding]:
    devices = view.scrape.devices
    modelled = {row["device_uuid"] for row in devices.to_pylist() if row["model"] is not None}
    unknown = view.uuids - modelled
    if unknown:
        yield gap(
            Code.MODEL_ABSENT,
            view.url,
            message=f"no model for {share(len(unknown), view.device_count, 'device')}: prices and "
            "capacity by model leave them out",
            remedy="see that the exporter prints the model (label modelName), and is not told to "
            "leave it out",
        )


def _node_unnamed(view: TargetView) -> Iterator[Finding]:
    if view.target.node is not None:
        return
    nodes = texts(view.scrape.samples, "node")
    if nodes != {target_host(view.url)}:
        return
    said = {
        labels.pairs[name]
        for _, labels, *_ in view.exposition.samples
        for name in _HOST_LABELS
        if labels.pairs.get(name)
    } - nodes
    what = (
        f"its label says {named(said)}, which is no node" if said else "it does not name its node"
    )
    yield note(
        Code.NODE_FROM_ADDRESS,
        view.url,
        message=f"{what}: the node is called {named(nodes)} after the address",
        remedy="give the exporter NODE_NAME (spec.nodeName), or discover it through Kubernetes",
    )


def _clock(view: TargetView) -> Iterator[Finding]:
    """Yield what is wrong with its clock by its Date header, and with its values' own times."""
    skew_s = 0.0 if view.skew_s is None else view.skew_s
    age_s = _newest_age_s(view, skew_s=skew_s)
    if abs(skew_s) >= SKEW_LIMIT_S:
        yield _skew(view, skew_s)
    elif age_s is not None and age_s <= -SKEW_LIMIT_S:
        yield _skew(view, -age_s)
    if age_s is not None and age_s >= OLD_LIMIT_S:
        yield gap(
            Code.VALUES_OLD,
            view.url,
            message=f"its newest value is {lasting(age_s)} old by its own clock",
            remedy="look why the exporter does not read its devices any more, and restart it",
        )


def _skew(view: TargetView, skew_s: float) -> Finding:
    way = "ahead of" if skew_s > 0 else "behind"
    return gap(
        Code.CLOCK_SKEW,
        view.url,
        message=f"its clock is at least {lasting(abs(skew_s))} {way} this machine's: samples of "
        "one moment land in different intervals",
        remedy="set both clocks by NTP",
    )


def _newest_age_s(view: TargetView, *, skew_s: float) -> float | None:
    """Return how old its newest value is by its own clock; None where values have no times."""
    own = [stamp_ms for *_, stamp_ms in view.exposition.samples if stamp_ms is not None]
    if not own:
        return None
    return view.scrape.scraped_at.timestamp() + skew_s - max(own) / MILLIS_PER_SECOND


def _lines_dropped(view: TargetView) -> Iterator[Finding]:
    count = view.exposition.dropped_line_count
    if count:
        first = view.exposition.dropped_examples[0]
        yield note(
            Code.LINES_DROPPED,
            view.url,
            message=f"{counted(count, 'line')} cannot be read, the first is line "
            f"{first.line_number} ({first.fault}): {first.excerpt}",
            remedy="report them to the exporter's authors; the other lines count",
        )


def _values_repeated(view: TargetView) -> Iterator[Finding]:
    scrape = view.scrape
    if scrape.duplicate_count:
        yield note(
            Code.VALUES_REPEATED,
            view.url,
            message=f"{counted(scrape.duplicate_count, 'value')} came before in the same answer "
            f"(shared GPUs, a federating server), {scrape.conflict_count:,} of them with another "
            "number; each device counts once",
        )


def _values_cached(view: TargetView) -> Iterator[Finding]:
    """Yield where everything that moves on a live device stood still for one interval."""
    if view.second is None or not (view.has("power_w") or view.has("energy_j")):
        return
    columns = ["device_uuid", "instance_id", *MEASURES]
    if view.scrape.samples.select(columns).equals(view.second.samples.select(columns)):
        waited_s = (view.second.scraped_at - view.scrape.scraped_at).total_seconds()
        yield note(
            Code.VALUES_CACHED,
            view.url,
            message=f"two scrapes {waited_s:.0f} s apart brought the same values: it reads its "
            "devices less often than it is asked",
            remedy="shorten the exporter's own interval (dcgm-exporter: -c 15000, in milliseconds; "
            "30 s by default), or lengthen collect.interval_s",
        )


def _names_unknown(view: TargetView) -> Iterator[Finding]:
    names = [one for one in view.scrape.unknown_names if not one.startswith(_OWN_METRICS)]
    if names:
        yield note(
            Code.NAMES_UNKNOWN,
            view.url,
            message=f"{counted(len(names), 'metric name')} not used: {named(names)}",
        )


_CHECKS: Final[tuple[Callable[[TargetView], Iterator[Finding]], ...]] = (
    measure_findings,
    agent_findings,
    holder_findings,
    _uuid_absent,
    _model_absent,
    _node_unnamed,
    _clock,
    _lines_dropped,
    _values_repeated,
    _values_cached,
    _names_unknown,
)
