"""Verdicts with their evidence, as rows of the warehouse: each change, and each once an hour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from enforcer.decisions import Decision
from enforcer.facts import Snapshot, Workload
from enforcer.jsontext import json_text
from enforcer.policies.decide import NOT_JUDGED
from enforcer.policies.model import Policy, Rule
from steward.ids import BatchId
from steward.ports import Writer

if TYPE_CHECKING:
    import polars as pl

TABLE: Final = "verdict"
REPEAT_AFTER: Final = timedelta(hours=1)
"""An unchanged verdict is stored again after so long, so that its evidence does not age."""


@dataclass(slots=True)
class Verdicts:
    """What was stored of each workload by this process.

    A process that starts anew stores all once more: that is a fact about them, too.
    """

    _stored: dict[str, tuple[str, datetime]] = field(default_factory=dict)

    def store(
        self,
        decisions: Iterable[Decision],
        snapshot: Snapshot,
        policies: Iterable[Policy],
        *,
        writer: Writer,
    ) -> int:
        """Append the verdicts that are new; return how many.

        Raises:
            WarehouseError: it cannot serve; they are stored by the next round.
        """
        due = [one for one in decisions if self._is_due(one, snapshot.taken_at)]
        if not due:
            return 0
        frame = _frame(due, snapshot, policies)
        if frame.height:
            batch_id = BatchId(f"verdicts-{snapshot.snapshot_id}")
            writer.append(TABLE, frame, batch_id=batch_id)
        self._stored |= {one.workload_uid: (_key(one), snapshot.taken_at) for one in due}
        return frame.height

    def _is_due(self, decision: Decision, at: datetime) -> bool:
        if decision.judgement is NOT_JUDGED:
            return False
        before = self._stored.get(decision.workload_uid)
        return before is None or before[0] != _key(decision) or at >= before[1] + REPEAT_AFTER


def _key(decision: Decision) -> str:
    """Return what makes a verdict another one; the idle time alone does not."""
    judgement = decision.judgement
    said = (decision.policy, decision.policy_version, decision.rule, decision.step)
    return json_text([judgement.verdict, judgement.reasons, judgement.findings, *said])


def _frame(due: Iterable[Decision], snapshot: Snapshot, policies: Iterable[Policy]) -> pl.DataFrame:
    import polars as pl  # heavy: only a round that stores needs it

    workloads = {one.uid: one for one in snapshot.workloads}
    rules = {(p.name, p.version, rule.name): rule for p in policies for rule in p.rules}
    rows = [
        _row(one, workloads[one.workload_uid], rules, at=snapshot.taken_at)
        for one in due
        if (one.policy, one.policy_version, one.rule) in rules
    ]
    return pl.DataFrame(rows, schema=_schema(), orient="row")


def _schema() -> dict[str, pl.DataType]:
    import polars as pl  # heavy: only a round that stores needs it

    return {
        "judged_at": pl.Datetime("us", "UTC"),
        "cluster": pl.String(),
        "workload_uid": pl.String(),
        "verdict": pl.String(),
        "reason_codes": pl.String(),
        "window_s": pl.Float64(),
        "coverage_ratio": pl.Float64(),
        "evidence_json": pl.String(),
        "policy_version": pl.String(),
    }


def _row(
    decision: Decision,
    workload: Workload,
    rules: Mapping[tuple[str, int, str], Rule],
    *,
    at: datetime,
) -> dict[str, object]:
    rule = rules[decision.policy, decision.policy_version, decision.rule or ""]
    judgement = decision.judgement
    return {
        "judged_at": at,
        "cluster": workload.cluster,
        "workload_uid": workload.uid,
        "verdict": judgement.verdict.value,
        "reason_codes": ",".join(judgement.reasons),
        "window_s": 0.0 if rule.idle is None else rule.idle.window.total_seconds(),
        "coverage_ratio": judgement.coverage_ratio,
        "evidence_json": json_text({"decision": decision, "evidence": workload.evidence}),
        "policy_version": f"{decision.policy}@{decision.policy_version}",
    }
