"""Carrying out a comparison: ahead of each write the ledger, then a rehearsal, then the write.

The same ledger, verification and undo as for every other act; its subject is a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from enforcer.actuators.acts import BeforeImage, Restoring
from enforcer.decisions import Setting
from enforcer.entries import Entry, Outcome, instant_text
from enforcer.gateway.port import Target, Verb, Write
from enforcer.hands import Hands
from enforcer.jsontext import json_text, sha256_of
from enforcer.ledger import Draft
from enforcer.quota.change import QuotaChange
from enforcer.settling import settle
from steward.errors import ClusterError, ConflictError, DeniedError, FencedError, RefusedError

BY_FILE: Final = "quota_file"
"""Reason of a change that the file alone asks for."""
_DIGEST_LENGTH: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One change and what became of it."""

    change: QuotaChange
    is_done: bool
    detail: str | None


def carry_out(
    change: QuotaChange, hands: Hands, *, reasons: tuple[str, ...], facts_at: datetime
) -> Written:
    """Write one change; it is done once the object says so.

    Args:
        change: what differs.
        hands: of the leader, or of a person.
        reasons: why: ``quota_file`` and the requests in force.
        facts_at: when the cluster was read.

    Raises:
        FencedError: another replica leads now.
        WarehouseError: the ledger cannot be written: nothing was changed.
    """
    entry = hands.ledger.begin(
        _draft(change, hands, reasons=reasons), known=hands.ledger.known(at=facts_at)
    )
    if entry is None:
        return Written(change=change, is_done=False, detail="another act on it is under way")
    is_done, detail = write_through(entry, change.write, hands)
    return Written(change=change, is_done=is_done, detail=detail)


def write_through(entry: Entry, write: Write, hands: Hands) -> tuple[bool, str | None]:
    """Rehearse and write an act that was begun; return whether it is seen, and what is wrong.

    A refusal ends the act; an answer that never came leaves it open, for a later look.

    Raises:
        FencedError: another replica leads now.
    """
    try:
        hands.gateway.rehearse(write)
        hands.gateway.write(write)
    except FencedError:
        raise
    except (ConflictError, DeniedError, RefusedError) as error:
        hands.ledger.end(entry, Outcome.FAILED, detail=error.message)
        return False, error.message
    except ClusterError as error:
        return False, f"not known yet: {error.message}"
    if hands.reach.is_dry_run:
        hands.ledger.end(entry, Outcome.DONE, detail="rehearsed only")
        return True, "rehearsed only"
    settled = settle(hands, only=frozenset({entry.action_id}))
    is_done = all(one.outcome is Outcome.DONE for one in settled)
    return is_done, settled[0].detail if settled else None


def subject_of(holder: Target) -> str:
    """Return what a queue is called where workloads have a uid."""
    place = holder.name if holder.namespace is None else f"{holder.namespace}/{holder.name}"
    return f"{holder.kind}/{place}"


def before_of(change: QuotaChange) -> BeforeImage:
    """Return what undoing needs."""
    return BeforeImage(
        step=Setting.QUOTA,
        subject=change.holder,
        holder=change.holder,
        verb=Verb.PATCH,
        changes=change.changes,
        restoring=Restoring.FIELDS,
        pod_labels="",
        pod_uids=(),
    )


def _draft(change: QuotaChange, hands: Hands, *, reasons: tuple[str, ...]) -> Draft:
    evidence: Mapping[str, object] = {"differences": change.differences}
    at = instant_text(hands.clock.now())
    digest = sha256_of(json_text([subject_of(change.holder), evidence, at]))[:_DIGEST_LENGTH]
    return Draft(
        plan_id=f"quota-{digest}",
        number=0,
        step=Setting.QUOTA.value,
        workload_uid=subject_of(change.holder),
        tenant_id=change.differences[0].tenant_id,
        target=change.holder,
        gpu_milli=0,
        reasons=reasons,
        evidence=evidence,
        before=before_of(change).text(),
        is_dry_run=hands.reach.is_dry_run,
    )
