"""Run a backtest on the warehouse that is set, print it and record it for stored policies."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from analytics.cost.rates import Rates, rates
from analytics.evidence.found import CELL_S
from enforcer.backtest import Trial, backtest
from enforcer.backtest_cli import DAYS
from enforcer.backtest_record import TABLE, document_of, row_of
from enforcer.backtest_result import Backtest
from enforcer.backtest_text import difference_of, text_of
from enforcer.history import History, history, whole
from enforcer.policies.commands import is_file, named_policy, person
from enforcer.policies.model import Policy
from enforcer.policies.store import Policies
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import UsageError
from steward.output import write_output
from steward.period import Period, instant_from
from steward.ports import Reader, StateLog, StateReader

JSON: Final = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """What both backtests of one command stand on."""

    cluster: str
    period: Period
    every: timedelta
    current: Sequence[Policy]


def run_backtest(args: argparse.Namespace, context: Context) -> int:
    """Print what a policy would have done; record it where the policy is a stored version."""
    policy, _ = named_policy(args.policy, context)
    other = None if args.against is None else named_policy(args.against, context)[0]
    with open_warehouse(context.settings) as warehouse:
        ground = _ground(args, warehouse, Policies(warehouse).current(context.clock.now()))
        shown = _backtest(policy, ground, reader=warehouse, state=warehouse)
        if not is_file(args.policy):
            _record(warehouse, shown, author=args.author or person())
        before = (
            None if other is None else _backtest(other, ground, reader=warehouse, state=warehouse)
        )
    text = _json(shown, before) if args.format == JSON else _text(shown, before, policy)
    write_output(args.output, text)
    return 0


def _text(shown: Backtest, before: Backtest | None, policy: Policy) -> str:
    text = text_of(shown, bound=policy.max_regret_ratio)
    return text if before is None else f"{text}\n{difference_of(before, shown)}"


def _json(shown: Backtest, before: Backtest | None) -> str:
    document = document_of(shown)
    if before is not None:
        document["against"] = document_of(before)
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _backtest(policy: Policy, ground: _Ground, *, reader: Reader, state: StateReader) -> Backtest:
    trial = Trial(
        policy=policy,
        ancestors=ancestors(policy, ground.current),
        cluster=ground.cluster,
        period=ground.period,
        every=ground.every,
    )
    prices = state.state_rows("price")

    def load(period: Period) -> History:
        return history(reader, state, period, cluster=ground.cluster)

    def pricing(models: Sequence[str], /) -> Rates:
        return rates(prices, ground.period, models=models, cluster=ground.cluster)

    return backtest(load, trial, pricing=pricing)


def ancestors(policy: Policy, current: Sequence[Policy]) -> tuple[Policy, ...]:
    """Return a policy's parent, the parent of that, and so on, of those that hold."""
    by_name = {one.name: one for one in current if one.name != policy.name}
    found: list[Policy] = []
    above = policy.parent
    while above in by_name:
        one = by_name.pop(above or "")
        found.append(one)
        above = one.parent
    return tuple(found)


def _record(state: StateLog, shown: Backtest, *, author: str) -> None:
    state.state_append([(TABLE, row_of(shown, author=author))], seen={})


def _ground(args: argparse.Namespace, reader: Reader, current: Sequence[Policy]) -> _Ground:
    if args.every < 1:
        raise UsageError(f"--every {args.every} is no time", hint="one minute is the least")
    newest_at = _newest(reader)
    until_at = newest_at if args.until_at is None else instant_from(args.until_at, option="--to")
    from_at = (
        until_at - timedelta(days=DAYS)
        if args.from_at is None
        else instant_from(args.from_at, option="--from")
    )
    return _Ground(
        cluster=_cluster(args, reader),
        period=Period(whole(from_at, cell_s=CELL_S), whole(min(until_at, newest_at))),
        every=timedelta(minutes=args.every),
        current=current,
    )


def _newest(reader: Reader) -> datetime:
    (newest_at,) = _column(reader, "data_extent", "last_at")
    if not isinstance(newest_at, datetime):
        raise UsageError("nothing is stored yet", hint="run `steward collect` for some days first")
    return newest_at.astimezone(UTC)


def _column(reader: Reader, query: str, name: str) -> list[object]:
    from polars import DataFrame  # heavy: the front door lists it

    return DataFrame(reader.query(query))[name].to_list()


def _cluster(args: argparse.Namespace, reader: Reader) -> str:
    known = [str(name) for name in _column(reader, "known_cluster", "cluster")]
    if args.cluster is None and len(known) == 1:
        return known[0]
    if args.cluster not in known:
        raise UsageError(
            "say which cluster is meant"
            if args.cluster is None
            else f"there is no cluster {args.cluster!r}",
            hint=f"the clusters are {', '.join(known)}",
        )
    return str(args.cluster)
