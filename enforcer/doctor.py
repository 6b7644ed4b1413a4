"""What the enforcer can see and what it can do here: kind by kind, and what is missing for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from enforcer.actuators.fields import text_at
from enforcer.facts import Health
from enforcer.gateway.port import Gateway, Target
from enforcer.lease import API, LeaseTerms
from enforcer.policies.model import Policy
from enforcer.rbac import Need, needs
from steward.errors import ClusterError

STALE_AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at."""

    subject: str
    is_good: bool
    words: str


def examined_kinds(gateway: Gateway, kinds: Iterable[str]) -> tuple[Finding, ...]:
    """Return for each need of the enabled kinds whether the account may, in the order of needs.

    Raises:
        ClusterError: the server gives no answer.
    """
    return tuple(_examined(gateway, need) for need in needs(kinds))


def _examined(gateway: Gateway, need: Need) -> Finding:
    missing = [
        verb
        for verb in need.verbs
        if not gateway.may(verb=verb, api_version=need.api_version, kind=need.kind, namespace=None)
    ]
    word = "act" if need.is_acting else "see"
    words = f"can {word}: {need.why}"
    if missing:
        words = f"cannot {word} ({', '.join(missing)} missing, or not served): {need.why}"
    return Finding(subject=f"{need.api_version} {need.kind}", is_good=not missing, words=words)


def examined_lease(gateway: Gateway, terms: LeaseTerms) -> Finding:
    """Return who holds the lease."""
    subject = f"lease {terms.namespace}/{terms.name}"
    target = Target(
        api_version=API, kind="Lease", namespace=terms.namespace, name=terms.name, uid=None
    )
    try:
        found = gateway.read(target)
    except ClusterError as error:
        return Finding(subject=subject, is_good=False, words=error.message)
    holder = None if found is None else text_at(found, "spec", "holderIdentity")
    words = f"held by {holder}" if holder else "held by nobody: no replica runs"
    return Finding(subject=subject, is_good=True, words=words)


def examined_facts(
    health: Health, policies: Iterable[Policy], *, now: datetime
) -> tuple[Finding, ...]:
    """Return whether readings are fresh, what each policy may do, and how the switch is."""
    at = health.telemetry_at
    is_fresh = at is not None and now - at <= STALE_AFTER
    told = "no reading is stored" if at is None else f"newest reading of {at:%Y-%m-%d %H:%M UTC}"
    switch = "stopped: nothing acts" if health.is_stopped else "released"
    return (
        Finding(subject="telemetry", is_good=is_fresh, words=told),
        Finding(subject="switch", is_good=not health.is_stopped, words=switch),
        *(
            Finding(
                subject=f"policy {one.name}@{one.version}",
                is_good=True,
                words=f"{one.mode}, {len(one.rules)} rules",
            )
            for one in policies
        ),
    )
