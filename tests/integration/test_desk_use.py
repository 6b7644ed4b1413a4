"""What an approver is shown: use lately, and since each earlier grant, from the stored ledger."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from enforcer.desk.cases import cases
from enforcer.desk.model import Answer, Case, DeskRules
from enforcer.desk.office import Desk
from enforcer.desk.use import Use, earlier_grants, use_of
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.units import TICKS_PER_GPU_HOUR
from tests.support.enforced_cluster import Ticking
from tests.support.enforcer_desk import quota_wish, wish
from tests.support.enforcer_plan import NOON
from tests.support.ledger_stored import LEDGER_ROW, build_row, store

HOUR = timedelta(hours=1)
HALF = TICKS_PER_GPU_HOUR // 2


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[EmbeddedWarehouse]:
    found = open_embedded(tmp_path)
    try:
        yield found
    finally:
        found.close()


def built(warehouse: EmbeddedWarehouse, hours: int, *, effective_s: float | None = 900.0) -> None:
    """Store hours in which vision held one GPU, half of the time idle."""
    starts = [NOON + number * HOUR for number in range(hours)]
    row = {
        **LEDGER_ROW,
        "cluster": "prod",
        "tenant_id": "vision",
        "workload_uid": "w-1",
        "device_uuid": "GPU-0",
        "used_measured_ticks": HALF,
        "idle_ticks": HALF,
        "effective_s": effective_s or 0.0,
        "effective_known_s": 0.0 if effective_s is None else 1_800.0,
    }
    others = {**row, "tenant_id": "audio", "workload_uid": "w-2", "device_uuid": "GPU-1"}
    store(
        warehouse,
        "ledger_hour",
        *[{**one, "hour_at": at} for at in starts for one in (row, others)],
    )
    store(warehouse, "ledger_build", *[build_row(starts_at=at, row_count=2) for at in starts])


def asked(warehouse: EmbeddedWarehouse, clock: Ticking, *hours: float) -> tuple[Case, ...]:
    """Ask for quota again and again, each granted and applied, three hours apart."""
    for length in hours:
        ada = Desk(state=warehouse, clock=clock, actor="ada")
        number = ada.submit(quota_wish(4, hours=length)).request.request_id
        bob = Desk(state=warehouse, clock=clock, actor="bob")
        case = bob.answer(number, Answer.GRANTED, reason=None)
        bob.record(case, "applied", before=None, detail=None)
        clock.pass_(3 * HOUR)
    return Desk(state=warehouse, clock=clock, actor="bob").cases()


def test_scenario_20_an_approver_sees_earlier_grants_and_what_was_made_of_each(
    warehouse: EmbeddedWarehouse,
) -> None:
    built(warehouse, 8)
    clock = Ticking()
    found = asked(warehouse, clock, 4, 24)
    earlier = earlier_grants(warehouse, found[-1], found, now=clock.now())
    assert [one.case.request.request_id for one in earlier] == [1]
    assert earlier[0].use == Use(
        held_gpu_hours=4.0,
        idle_gpu_hours=2.0,
        unknown_gpu_hours=0.0,
        effective_ratio=0.5,
        known_ratio=0.5,
    )


def test_what_was_refused_or_is_of_others_is_no_earlier_grant(
    warehouse: EmbeddedWarehouse,
) -> None:
    clock = Ticking()
    ada = Desk(state=warehouse, clock=clock, actor="ada")
    refused = ada.submit(quota_wish(2)).request.request_id
    Desk(state=warehouse, clock=clock, actor="bob").answer(refused, Answer.REFUSED, reason="no")
    ada.submit(wish())
    last = ada.submit(quota_wish(3)).request.request_id
    assert earlier_grants(warehouse, ada.case(last), ada.cases(), now=clock.now()) == ()


@pytest.mark.parametrize(
    ("effective_s", "ratio"),
    [
        pytest.param(0.0, 0.0, id="a measured zero"),
        pytest.param(None, None, id="never measured"),
        pytest.param(1_800.0, 1.0, id="all of it"),
    ],
)
def test_effective_use_that_is_not_known_is_not_zero(
    warehouse: EmbeddedWarehouse, effective_s: float | None, ratio: float | None
) -> None:
    built(warehouse, 2, effective_s=effective_s)
    (case,) = asked(warehouse, Ticking(), 1)
    use = use_of(warehouse, case, from_at=NOON, until_at=NOON + 2 * HOUR)
    assert use is not None
    assert use.effective_ratio == ratio


def test_hours_that_are_not_built_are_said_and_a_team_without_gpus_held_none(
    warehouse: EmbeddedWarehouse,
) -> None:
    (case,) = asked(warehouse, Ticking(), 1)
    assert use_of(warehouse, case, from_at=NOON, until_at=NOON + HOUR) is None
    built(warehouse, 1)
    row = dict(warehouse.state_rows("request")[0]) | {"tenant_id": "nobody", "scope_key": "nobody"}
    (other,) = cases([row], [], [], rules=DeskRules(), now=NOON)
    use = use_of(warehouse, other, from_at=NOON, until_at=NOON + HOUR)
    assert use == Use(
        held_gpu_hours=0.0,
        idle_gpu_hours=0.0,
        unknown_gpu_hours=0.0,
        effective_ratio=None,
        known_ratio=None,
    )
