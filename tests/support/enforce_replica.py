"""One replica of the enforcer as a process of its own: real lease, real ledger, real rounds.

Only what it sees is the test's: all Jobs of one namespace are idle and due.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

from enforcer.calls import CountedGateway
from enforcer.controller import Controller
from enforcer.gateway.live import LiveGateway
from enforcer.gateway.live_access import LiveAccess, Origin
from enforcer.hands import Hands, Reach
from enforcer.lease import Elector, Keeper, LeaseTerms
from enforcer.ledger import Ledger
from enforcer.notify import EventChannel
from enforcer.run import go_on
from sql.client import RemoteWarehouse, connect
from steward.clock import SystemClock
from steward.ids import BatchId
from steward.ports import AppendReceipt, ArrowTable
from steward.settings import EnforceSettings
from tests.support.enforce_jobs import IdleJobs
from tests.support.enforcer_plan import CLUSTER

LEASE = timedelta(seconds=3)
INTERRUPTED_AFTER = timedelta(seconds=4)
INTERVAL_S = 1.0


class NoVerdicts:
    """Takes verdicts and keeps none: they are not what these tests look at."""

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Say that they are stored."""
        del rows
        return AppendReceipt(batch_id=batch_id, table=table, row_count=0, is_repeat=False)


def controller(args: argparse.Namespace, store: RemoteWarehouse) -> tuple[Controller, Elector]:
    """Return the parts of this replica."""
    origin = Origin(kubeconfig=args.kubeconfig)
    identity = f"replica-{os.getpid()}"
    terms = LeaseTerms(namespace=args.namespace, name="lease", identity=identity, length=LEASE)
    ledger = Ledger(store, cluster=CLUSTER, clock=SystemClock(), actor=identity)
    elector = Elector(
        LiveGateway(LiveAccess(origin), is_leading=lambda: True),
        terms,
        clock=SystemClock(),
        monotonic=time.monotonic,
        above=lambda: ledger.entries().newest_fence,
    )
    own = Ledger(store, cluster=CLUSTER, clock=SystemClock(), actor=identity, fence=elector.fence)
    live = LiveGateway(LiveAccess(origin), is_leading=elector.is_leading)
    gateway = CountedGateway(live, monotonic=time.monotonic)
    hands = Hands(
        gateway=gateway,
        ledger=own,
        clock=SystemClock(),
        channels=(EventChannel(gateway),),
        reach=Reach(kinds=frozenset({"Job"}), interrupted_after=INTERRUPTED_AFTER),
    )
    sight = IdleJobs(gateway, own, args.namespace)
    return Controller(sight=sight, hands=hands, writer=NoVerdicts()), elector


def main() -> int:
    """Do rounds until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--warehouse")
    parser.add_argument("--namespace")
    args = parser.parse_args()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.basicConfig(level=logging.INFO, format=f"{os.getpid()} %(asctime)s %(message)s")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    made, elector = controller(args, connect(args.warehouse))
    with Keeper(elector, length=LEASE):
        go_on(made, elector, stop=stop, settings=EnforceSettings(interval_s=INTERVAL_S))
    return 0


if __name__ == "__main__":
    sys.exit(main())
