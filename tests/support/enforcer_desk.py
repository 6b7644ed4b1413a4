"""Wishes with harmless defaults, and a desk on a real state database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from enforcer.desk.intake import Wish
from enforcer.desk.model import RequestKind
from enforcer.desk.office import Desk
from sql.state import open_state
from tests.support.enforced_cluster import Killer, Log, Ticking
from tests.support.enforcer_plan import NOON
from tests.support.enforcer_quota import H100


@contextmanager
def opened(folder: Path) -> Iterator[Log]:
    """Open a real state database."""
    store = open_state(folder)
    try:
        yield Log(store, Killer())
    finally:
        store.close()


def desk(state: Log, clock: Ticking, actor: str = "bob") -> Desk:
    return Desk(state=state, clock=clock, actor=actor)


def wish(  # noqa: PLR0913 - a builder: each fact has its harmless default
    kind: RequestKind = RequestKind.KEEP_ALIVE,
    *,
    scope: tuple[str, str] = ("workload", "w-1"),
    hours: float = 4,
    requester: str = "ada",
    gpu_count: int | None = None,
    priority_class: str | None = None,
    from_at: datetime = NOON,
    reason: str = "a deadline",
) -> Wish:
    return Wish(
        cluster="prod",
        kind=kind,
        tenant_id="vision",
        scope_kind=scope[0],
        scope_key=scope[1],
        gpu_model=None if gpu_count is None else H100,
        gpu_count=gpu_count,
        priority_class=priority_class,
        requester=requester,
        reason=reason,
        from_at=from_at,
        length=timedelta(hours=hours),
    )


def quota_wish(gpu_count: int = 4, *, hours: float = 24, requester: str = "ada") -> Wish:
    return wish(
        RequestKind.QUOTA,
        scope=("tenant", "vision"),
        gpu_count=gpu_count,
        hours=hours,
        requester=requester,
    )
