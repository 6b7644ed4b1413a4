"""Who borrows, who lends, who starves: a whole company by hand, to the GPU-hour."""

from __future__ import annotations

from analytics.fairness import lending, quota_spans, quota_use
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON
from tests.support.governance_rows import told

PERIOD = Period(NOON, NOON + 2 * HOUR)


def quota(
    team: str, *, cohort: str, guaranteed: float, used: float, waits: int = 0
) -> dict[str, object]:
    return {
        "tenant_id": team,
        "queue": f"{team}-queue",
        "cohort": cohort,
        "guaranteed_gpu_count": guaranteed,
        "used_gpu_count": used,
        "pending_workload_count": waits,
    }


COMPANY = [
    quota("speech", cohort="research", guaranteed=16, used=4),
    quota("vision", cohort="research", guaranteed=8, used=14),
    quota("robots", cohort="research", guaranteed=8, used=12, waits=3),
    quota("ads", cohort="product", guaranteed=32, used=32),
    quota("search", cohort="product", guaranteed=32, used=8),
    quota("maps", cohort="product", guaranteed=0, used=10),
]
"""Research: 12 unused, 6 + 4 borrowed. Product: 24 unused, 10 borrowed by a team without any."""


def test_scenario_37_pairs_of_lender_and_borrower_match_a_hand_computed_company() -> None:
    spans = quota_spans(told("quota_use", *COMPANY), PERIOD)
    pairs = lending(spans, "tenant_id")
    found = {
        (row["lender"], row["borrower"]): row["gpu_hours"] for row in pairs.iter_rows(named=True)
    }
    assert found == {
        ("speech", "vision"): 12.0,
        ("speech", "robots"): 8.0,
        ("search", "maps"): 20.0,
    }


def test_scenario_37_the_whole_hierarchy_adds_up() -> None:
    spans = quota_spans(told("quota_use", *COMPANY), PERIOD)
    use = quota_use(spans, "tenant_id")
    lent = lending(spans, "tenant_id")["gpu_hours"].sum()
    assert use["borrowed_gpu_hours"].sum() == lent == 40.0
    assert use["unused_gpu_hours"].sum() == 72.0
