"""One replica's rounds: end what is open, see, decide, plan, act. Idempotent, killed at any point.

A round reads everything anew; what it remembers of earlier ones is in the ledger. Whatever fails,
the next round begins from what is stored and from what the cluster says.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from enforcer.apply import Applied, Round, apply
from enforcer.decisions import Decision, Plan
from enforcer.enrich import enriched, subject_target
from enforcer.facts import Snapshot
from enforcer.gateway.port import Target
from enforcer.hands import Hands
from enforcer.ledger import Known
from enforcer.metrics import EnforcerMetrics
from enforcer.planning.plan import plan_from
from enforcer.policies.decide import decide
from enforcer.policies.model import Policy
from enforcer.settling import Settled, note_restores, settle
from enforcer.undo import Undone, undo_due
from enforcer.verdicts import Verdicts
from steward.errors import FencedError, StewardError
from steward.ports import Writer

WATCHED_FOR: Final = timedelta(hours=24)
"""So long after an act it is looked at whether somebody put its object back by hand."""
logger = logging.getLogger(__name__)


class Sight(Protocol):
    """What a round sees; how it is read is the caller's."""

    def policies(self, now: datetime) -> tuple[Policy, ...]:
        """Return the policies in force."""
        ...

    def snapshot(self, policies: tuple[Policy, ...], now: datetime) -> Snapshot:
        """Return the facts of an instant that is not after ``now``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """What a round came to before it did anything."""

    snapshot: Snapshot
    policies: tuple[Policy, ...]
    decisions: tuple[Decision, ...]
    plan: Plan
    known: Known


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """What one round did."""

    considered: Considered
    applied: tuple[Applied, ...]
    settled: tuple[Settled, ...]
    undone: tuple[Undone, ...]


def consider(sight: Sight, hands: Hands) -> Considered:
    """See, decide and plan; nothing is written anywhere.

    Raises:
        StewardError: something could not be read: then nothing is known and nothing may act.
    """
    now = hands.clock.now()
    policies = sight.policies(now)
    ledger_id = hands.ledger.entries().newest_id
    snapshot = sight.snapshot(policies, now)
    at = snapshot.taken_at
    decisions = decide(snapshot, policies, at)
    seen = enriched(snapshot, decisions, hands.gateway)
    return Considered(
        snapshot=seen,
        policies=policies,
        decisions=decisions,
        plan=plan_from(decisions, seen, policies, at),
        known=Known(newest_id=ledger_id, at=at),
    )


class Tender(Protocol):
    """What a leader looks after beside reclaiming, before it decides."""

    def tend(self, hands: Hands, find: Callable[[str], Target | None]) -> None:
        """Do all that is due; ``find`` returns a workload's object by its uid.

        Raises:
            FencedError: another replica leads now.
        """
        ...


@dataclass(slots=True)
class _Finder:
    """Knows workloads' objects; looks once, and only if it is asked."""

    sight: Sight
    now: datetime
    _known: dict[str, Target] | None = None

    def find(self, workload_uid: str) -> Target | None:
        """Return a workload's object by its uid; None where nobody knows it now."""
        if self._known is None:
            workloads = self.sight.snapshot((), self.now).workloads
            self._known = {one.uid: subject_target(one) for one in workloads}
        return self._known.get(workload_uid)


@dataclass(slots=True, kw_only=True)
class Controller:
    """Rounds of one replica; whether it leads is the fence's business."""

    sight: Sight
    hands: Hands
    writer: Writer
    """Where verdicts are kept."""
    metrics: EnforcerMetrics = field(default_factory=EnforcerMetrics)
    monotonic: Callable[[], float] = time.monotonic
    verdicts: Verdicts = field(default_factory=Verdicts)
    tender: Tender | None = None
    """The quota desk; None where nobody keeps one."""

    def tend(self) -> tuple[tuple[Settled, ...], tuple[Undone, ...]]:
        """End what is open and take back what is due, without new decisions.

        Raises:
            FencedError: another replica leads now.
            WarehouseError: the ledger cannot be read or written.
        """
        undone = undo_due(self.hands)
        settled = settle(self.hands)
        self.metrics.count_settled(settled)
        return settled, undone

    def round(self) -> RoundReport:
        """Do one whole round.

        Raises:
            FencedError: another replica leads now.
            StewardError: something could not be read or recorded; nothing more was done.
        """
        settled, undone = self.tend()
        since_at = self.hands.clock.now() - WATCHED_FOR
        note_restores(self.hands, since_at=since_at)
        if self.tender is not None and not self.hands.ledger.is_stopped():
            self.tender.tend(self.hands, _Finder(self.sight, self.hands.clock.now()).find)
        found = consider(self.sight, self.hands)
        self.metrics.show_plan(found.decisions, found.plan)
        self.verdicts.store(found.decisions, found.snapshot, found.policies, writer=self.writer)
        applied = apply(_round(found), self.hands)
        self.metrics.count_applied(applied)
        return RoundReport(considered=found, applied=applied, settled=settled, undone=undone)

    def rehearse(self) -> RoundReport:
        """Do one round that changes nothing: each act is checked by the server and recorded so.

        Raises:
            StewardError: something could not be read or recorded.
        """
        found = consider(self.sight, self.hands)
        applied = apply(_round(found), self.hands)
        return RoundReport(considered=found, applied=applied, settled=(), undone=())

    def try_round(self) -> RoundReport | None:
        """Do one round; a failure is logged and counted, and the next one begins anew."""
        began_s = self.monotonic()
        outcome, report = "done", None
        try:
            report = self.round()
        except FencedError as error:
            outcome = "fenced"
            logger.info("round ended: %s", error.message)
        except StewardError as error:
            outcome = "failed"
            logger.warning("round failed: %s (%s)", error.message, error.hint)
        self.metrics.count_round(outcome, self.monotonic() - began_s)
        return report

    def try_tend(self) -> None:
        """End what is open; a failure is logged, and the next look comes soon."""
        try:
            self.tend()
        except StewardError as error:
            logger.info("looking at open acts failed: %s", error.message)


def _round(found: Considered) -> Round:
    return Round(
        plan=found.plan,
        snapshot=found.snapshot,
        policies=found.policies,
        known=found.known,
    )
