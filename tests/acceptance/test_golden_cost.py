"""Every golden case of GPU cost, exactly, by the product's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import msgspec
import polars as pl
import pytest

from analytics.cost import forecast
from analytics.cost.borrow import BorrowPolicy, Quota, borrowing
from analytics.cost.charge import price_instants
from analytics.cost.currency import ExchangeRate, converted
from analytics.cost.energy import Draw, Tariff, energy_cost
from analytics.cost.rounding import apportioned, parts_of, printed, shared_out
from analytics.cost.shares import (
    MigBasis,
    Slices,
    active_shares,
    mig_shares,
    replica_shares,
)
from analytics.cost.split import SplitRule, split, weights
from analytics.cost.tco import RateCard, per_capacity_hour, per_sold_hour, per_year
from analytics.usage import allocated, leaf, share, totals
from collector.lifecycle.ownership_rules import OwnershipRules
from collector.lifecycle.requests import request_of
from collector.sources.kubernetes.objects import PodSpec
from steward.calendar_period import period_from
from tests.support.allocation_store import allocation_store
from tests.support.allocation_story import TEN, Story, holding, owner
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row
from tests.support.cost_cases import (
    EARLY,
    Found,
    Outcome,
    Runner,
    assert_told,
    at,
    at_rate,
    booked,
    cases_of,
    charged,
    history,
    money,
    money_by,
    prices,
)
from tests.support.kubernetes_objects import pod_spec
from tests.support.ledger_rows import free, held, ledger

HOURS = Fraction(3_600)
"""Seconds of one."""
DAY = timedelta(days=1)


def partition(inputs: Mapping[str, object]) -> Outcome:
    """G01: each segment's GPUs as rows of the ledger, used by the stated ratio."""
    used = {team: Fraction(text) for team, text in inputs["effective_util"].items()}
    rows = []
    for hours, gpus in inputs["segments_hours_gpus"]:
        for name, count in gpus.items():
            total = hours * count
            if name in used:
                team = None if name == "unattributed" else name
                busy = float(total * used[name])
                rows.append(held(tenant_id=team, used=busy, idle=total - busy))
            elif name.startswith("reserved_unused"):
                rows.append(free(tenant_id=name[-1], reserved_unused=total))
            else:
                rows.append(free(**{name: total}))
    told = charged(ledger(*rows), at_rate(inputs["rate"]))
    is_held = told.rows["is_held"]
    mine, nobodys = told.rows.filter(is_held), told.rows.filter(~is_held)
    capacity = money(told.rows, "capacity_parts")
    parts = {
        key: money_by(type(told)(rows=mine), "tenant_id", f"{key}_parts")
        for key in ("capacity", "used", "allocated_idle")
    }
    named = {
        key: {"unattributed" if team is None else team: cost for team, cost in found.items()}
        for key, found in parts.items()
    }
    allocated = money(mine, "capacity_parts")
    free_leaves = {
        "stranded": money(nobodys, "stranded_parts"),
        "reserved_unused_C": money(nobodys, "reserved_unused_parts"),
        "free_idle": money(nobodys, "free_idle_parts"),
        "down": money(nobodys, "down_parts"),
    }
    return Outcome(
        found={
            "capacity": capacity,
            "leaf_cost": named["capacity"] | free_leaves,
            "used": named["used"],
            "allocated_idle": named["allocated_idle"],
            "allocated": allocated,
            "unallocated": money(nobodys, "capacity_parts"),
            "effective_utilisation": money(told.rows, "used_parts") / capacity,
            "apparent_utilisation": allocated / capacity,
        }
    )


def reading(sampled_at: datetime, ratio: float) -> Row:
    """Return one reading whose effective utilisation is known and is this."""
    return {
        "sampled_at": sampled_at,
        "sm_active_ratio": ratio,
        "tensor_active_ratio": ratio,
        "dram_active_ratio": ratio,
    }


def price_change(inputs: Mapping[str, object]) -> Outcome:
    """G02: one pod's history; its device-time is cut where the price changes."""
    (_, early), (change, late) = inputs["prices"]
    start, end = (at(clock) for clock in inputs["pod"])
    book = prices(
        {"rate": early, "valid_until_at": at(change)}, {"rate": late, "valid_from_at": at(change)}
    )
    pod = {"started_at": start, "ended_at": end}
    stored = history(devices=[{"observed_at": EARLY}], held=[pod])
    told = charged(booked(stored, at("00:00"), at("20:00"), *price_instants(book)), book)
    cost = money(told.rows.filter("is_held"), "capacity_parts")
    assert (
        sum(money_by(told, "is_held").values())
        == Fraction(680, 60) * 4 + Fraction(520, 60) * 31 / 10
    )
    wrong = ("wrong_latest_price", "wrong_mean_of_prices", "wrong_price_at_start")
    return Outcome(found={"cost": cost}, beside=dict.fromkeys(wrong, cost))


def node_join_leave(inputs: Mapping[str, object]) -> Outcome:
    """G03: a whole day, in which a node of eight devices and a pod come and go off the hour."""
    (start, end), (bound, released) = (
        [at(clock) for clock in inputs[key]] for key in ("node", "pod")
    )
    names = [f"GPU-{number}" for number in range(8)]
    lives = [{"device_uuid": name, "observed_at": start} for name in names]
    pod = [{"device_uuid": name, "started_at": bound, "ended_at": released} for name in names[:3]]
    nodes = [{"observed_at": start}, {"observed_at": end, "is_present": False}]
    stored = history(devices=lives, held=pod, nodes=nodes)
    day = at("00:00"), at("00:00") + DAY
    told = charged(booked(stored, *day), at_rate("2.50")).rows
    capacity = money(told, "capacity_parts")
    return Outcome(
        found={
            "capacity": capacity,
            "pod": money(told.filter("is_held"), "capacity_parts"),
            "idle": money(told.filter(~pl.col("is_held")), "capacity_parts"),
        },
        beside={"wrong_full_day": capacity, "wrong_hour_rounded": capacity},
    )


def local_days(inputs: Mapping[str, object]) -> Outcome:
    """G04: days and months of named zones, priced by the hours they have."""
    gpus, rate = int(str(inputs["gpus"])), at_rate(inputs["rate"])
    devices = [{"device_uuid": f"GPU-{n}", "observed_at": EARLY} for n in range(gpus)]
    stored = history(devices=devices)
    now = datetime(2027, 1, 1, tzinfo=UTC)

    def cost(words: str, zone: str) -> Fraction:
        period = period_from(words, zone=zone, until_at=now)
        ledger_rows = booked(stored, period.from_at, period.until_at)
        return money(charged(ledger_rows, rate).rows, "capacity_parts")

    days = [
        ("America/New_York", (2026, 3, 8)),
        ("America/New_York", (2026, 11, 1)),
        ("America/New_York", (2026, 3, 9)),
        ("Europe/Berlin", (2026, 3, 29)),
        ("Europe/Berlin", (2026, 10, 25)),
        ("Asia/Shanghai", (2026, 3, 8)),
    ]
    found: dict[str, Found] = {
        f"{zone} {day}": cost(date(*day).isoformat(), zone) for zone, day in days
    }
    march = period_from("2026-03", zone="America/New_York", until_at=now)
    found["America/New_York 2026-03 month hours"] = Fraction(march.length / timedelta(hours=1))
    found["America/New_York 2026-03 month cost"] = cost("2026-03", "America/New_York")
    found["UTC 2026-03 month cost"] = cost("2026-03", "UTC")
    return Outcome(found=found)


def mig_geometry(inputs: Mapping[str, object]) -> Outcome:
    """G06: one board, two geometries, three bases."""
    profiles = {name: Slices(*slices) for name, slices in inputs["profiles"].items()}
    rate = Fraction(str(inputs["rate"]))
    layouts = {
        "3g+2g+1g": profiles,
        "3g+3g": {"3g_a": profiles["3g"], "3g_b": profiles["3g"]},
    }
    found: dict[str, Found] = {}
    for name, instances in layouts.items():
        by_basis = {}
        for basis in MigBasis:
            shares = mig_shares(instances, basis)
            assert sum(shares.values()) == 1
            by_basis[str(basis)] = {key: each * rate for key, each in shares.items()}
        found[name] = by_basis
    return Outcome(found=found)


def time_slice(inputs: Mapping[str, object]) -> Outcome:
    """G07: two holders of one of four replicas; hours from the title.

    By replica through the history of a device that is shared in quarters, and by the shares of
    whoever is active; the history of equal shares gives the latter too.
    """
    book, replicas = at_rate(inputs["rate"]), int(str(inputs["replicas"]))
    first, second, end = NOON, NOON + HOUR, NOON + 2 * HOUR

    def cost(*held: tuple[str, datetime, datetime, float]) -> dict[str, Fraction]:
        allocations = [
            {
                "pod": pod,
                "tenant_id": pod,
                "started_at": start,
                "ended_at": until,
                "gpu_share_ratio": ratio,
                "sharing_mode": "shared_equal",
                "replica": number,
            }
            for number, (pod, start, until, ratio) in enumerate(held)
        ]
        stored = history(devices=[{"observed_at": EARLY}], held=allocations)
        told = money_by(charged(booked(stored, first, end), book), "tenant_id")
        return {"idle": told.pop(None, Fraction(0)), **told}

    by_replica = cost(("P1", first, end, 1 / replicas), ("P2", first, second, 1 / replicas))
    by_activity = cost(
        ("P1", first, second, 0.5), ("P1", second, end, 1), ("P2", first, second, 0.5)
    )
    capacity = sum(by_replica.values())
    holders = {"P1": [(0, 2)], "P2": [(0, 1)]}
    shares = replica_shares(holders, (0, 2), replicas=replicas)
    assert {pod: each * capacity for pod, each in shares.items()} == by_replica
    active = active_shares(holders, (0, 2))
    assert {pod: each * capacity for pod, each in active.items()} == by_activity
    return Outcome(
        found={"replica_share": by_replica, "active_sharers": by_activity, "capacity": capacity}
    )


def label_change(inputs: Mapping[str, object]) -> Outcome:
    """G08: polls of a pod that is relabelled, as the collector tells them; hours from the title."""
    names = [f"GPU-{number}" for number in range(4)]
    story = Story()
    held_gpus = [holding(device_uuid=name) for name in names]
    polled = pl.datetime_range(at("08:00"), at("12:00"), "1m", eager=True)
    for polled_at in polled:
        team = "A" if polled_at < at("10:30") else "B"
        story.owners.by_pod["pod-1"] = owner(team, pod_uid="u1")
        story.poll((polled_at - TEN).total_seconds(), *held_gpus)
    story.finish((at("12:00") - TEN).total_seconds(), pod_uid="u1")
    with allocation_store() as store:
        store.add(story.rows)
        allocations = store.ask(at("08:00"), at("12:00"))
    devices = [{"device_uuid": name, "observed_at": EARLY} for name in names]
    stored = {**history(devices=devices), "allocation_history": allocations}
    told = charged(booked(stored, at("08:00"), at("12:00")), at_rate(inputs["rate"]))
    by_team = money_by(told, "tenant_id")
    total = money(told.rows, "capacity_parts")
    wrong = dict.fromkeys(("wrong_last_label", "wrong_both"), by_team)
    return Outcome(found={**by_team, "total": total}, beside=wrong)


def owner_resolution(inputs: Mapping[str, object]) -> Outcome:
    """G09: the collector's ladder names the team of each pod; nobody is a row of its own."""
    rules = OwnershipRules(team_labels=("team",))
    pods = []
    for number, pod in enumerate(inputs["pods"]):
        labels = {
            level: {"team": pod[f"{level}_label"]} if f"{level}_label" in pod else {}
            for level in ("pod", "ns")
        }
        team, _ = rules.tenant(
            pod=labels["pod"],
            workload=(),
            namespace=None,
            namespace_labels=labels["ns"],
            queue=None,
            queue_labels={},
        )
        end = NOON + pod["gpuh"] * HOUR
        pods.append(
            {
                "device_uuid": f"GPU-{number}",
                "pod": f"p{number}",
                "tenant_id": team,
                "ended_at": end,
            }
        )
    devices = [{"device_uuid": pod["device_uuid"], "observed_at": EARLY} for pod in pods]
    ledger_rows = booked(history(devices=devices, held=pods), NOON, NOON + DAY)
    told = charged(ledger_rows.filter("is_held"), at_rate(inputs["rate"]))
    by_team = money_by(told, "tenant_id")
    unattributed = by_team.pop(None)
    total = money(told.rows, "capacity_parts")
    return Outcome(found={**by_team, "unattributed": unattributed, "total": total})


def controlled_rounding(_inputs: Mapping[str, object]) -> Outcome:
    """G10: minor units by largest remainder; amounts from the names of the results."""
    thirds = {
        "namespace1": Fraction(52, 3),
        "namespace2": Fraction(124, 3),
        "namespace3": Fraction(70, 3),
        "idle": Fraction(30),
    }
    return Outcome(
        found={
            "100.00/3 even": shared_out(10_000, dict.fromkeys("abc", 1)),
            "0.10/7": shared_out(10, {f"t{n}": 1 for n in range(1, 8)}),
            "-10.00/3": apportioned(dict.fromkeys("abc", Fraction(-1_000, 3))),
            "112.00 by 17.33..41.33..23.33..30": printed(
                {key: parts_of(amount) for key, amount in thirds.items()}, "USD"
            ),
            "JPY 1000/3 (0 decimals)": printed(
                dict.fromkeys("abc", parts_of(Fraction(1_000, 3))), "JPY"
            ),
        }
    )


def shared_split(inputs: Mapping[str, object]) -> Outcome:
    """G11: 900.00 by each rule."""
    direct = {team: Fraction(text) for team, text in inputs["direct"].items()}
    custom = {"a": 5, "b": 3, "c": 1, "d": 1}
    found = {}
    for rule in SplitRule:
        name = "custom_5_3_1_1" if rule is SplitRule.CUSTOM else str(rule)
        found[name] = split(900, weights(rule, direct, custom=custom)).shares
    return Outcome(found=found)


def over_quota(inputs: Mapping[str, object]) -> Outcome:
    """G12: eight GPUs at 4.00 for one hour under each policy."""
    teams = {"A": Quota(guaranteed=16, used=24), "B": Quota(guaranteed=16, used=8)}
    rate = Fraction(str(inputs["borrow_rate"]))
    found: dict[str, Found] = {"capacity": Fraction(32)}
    for policy in BorrowPolicy:
        told = borrowing(teams, capacity=32, policy=policy, borrow_rate=rate)
        assert told.pool + sum(told.charges.values()) == 32
        assert sum(told.fees.values()) == sum(told.credits.values())
        found[str(policy)] = told.charges
    return Outcome(found=found)


def energy(_inputs: Mapping[str, object]) -> Outcome:
    """G13: 8 x 412.5 W for a day of UTC at two tariffs."""
    shared = {
        "cluster": None,
        "currency": "USD",
        "pue_micros": 1_320_000,
        "host_factor_micros": 1_000_000,
        "kgco2e_micros_per_kwh": 400_000,
        "time_zone": "UTC",
        "valid_from_at": EARLY,
        "valid_until_at": None,
    }
    day = Tariff(
        amount_micros_per_kwh=120_000, from_hour=8, until_hour=22, energy_tariff_id=1, **shared
    )
    nights = [
        Tariff(
            amount_micros_per_kwh=60_000,
            from_hour=first,
            until_hour=last,
            energy_tariff_id=n,
            **shared,
        )
        for n, (first, last) in enumerate([(0, 8), (22, 24)], start=2)
    ]
    midnight = at("00:00")
    joules = 8 * Fraction("412.5") * 24 * HOURS
    draw = Draw(cluster="c", from_at=midnight, until_at=midnight + timedelta(days=1), joules=joules)
    told = energy_cost([draw], [day, *nights], currency="USD")
    assert (told.unpriced_kwh, told.unknown_s) == (0, 0)
    return Outcome(
        found={
            "it_kwh": told.it_kwh,
            "facility_kwh": told.facility_kwh,
            "cost": told.cost,
            "kgco2e": told.kgco2e,
        }
    )


def tco_rate(_inputs: Mapping[str, object]) -> Outcome:
    """G14: the rate card of the title."""
    card = RateCard(
        gpus=8,
        server=300_000,
        residual_ratio=Fraction("0.15"),
        life_years=5,
        network_and_storage=60_000,
        network_life_years=5,
        colocation_kw=Fraction("10.2"),
        colocation_per_kw_month=180,
        load_ratio=Fraction("0.8"),
        pue=Fraction("1.3"),
        energy_per_kwh=Fraction("0.10"),
        support_per_year=9_000,
        staff_per_year=15_000,
    )
    sold = per_sold_hour(card, sold_ratio=Fraction("0.7"), is_idle_charged=False)
    return Outcome(
        found={
            "per_year": per_year(card),
            "per_gpu_capacity_hour": per_capacity_hour(card),
            "per_gpu_hour_leap_year": per_capacity_hour(card, is_leap=True),
            "per_gpu_sold_hour_at_70pct": sold,
        }
    )


def metric_gap(_inputs: Mapping[str, object]) -> Outcome:
    """G15: readings every ten minutes, but for two hours without one."""
    start, step = at("00:00"), timedelta(minutes=10)
    before = [start + n * step for n in range(-1, 67)]
    after = [before[-1] + 2 * HOUR + n * step for n in range(67)]
    readings = [reading(instant, 0.6) for instant in (*before, *after)]
    stored = history(
        devices=[{"observed_at": EARLY}], held=[{"started_at": EARLY}], readings=readings
    )
    told = charged(booked(stored, start, start + DAY), at_rate("2.00")).rows
    allocated, used = money(told, "capacity_parts"), money(told, "used_parts")
    unknown = money(told, "unknown_use_parts")
    utilisation = used / (allocated - unknown)
    assert utilisation == Fraction(3, 5)
    return Outcome(
        found={
            "allocated": allocated,
            "used_measured": used,
            "alloc_idle_measured": money(told, "allocated_idle_parts"),
            "unknown": unknown,
            "coverage": (allocated - unknown) / allocated,
        },
        # Gaps as zero leave the used cost alone and lower the utilisation: cost at that ratio.
        beside={
            "wrong_gap_as_zero_used": utilisation * allocated,
            "wrong_extrapolated_used": used,
        },
    )


def effective_request(_inputs: Mapping[str, object]) -> Outcome:
    """G17: the collector's rule on the pod of the title."""

    def asking(gpus: int, **more: str) -> dict[str, object]:
        return {"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}, **more}

    spec = {
        **pod_spec(),
        "initContainers": [asking(1), asking(2), asking(0, restartPolicy="Always")],
        "containers": [asking(1), asking(1)],
    }
    gpus = request_of(msgspec.convert(spec, PodSpec)).gpu_count
    return Outcome(found={"gpus": gpus}, beside={"wrong_sum_all": gpus})


def degenerate(_inputs: Mapping[str, object]) -> Outcome:
    """G19: nothing to divide by is null; a reading that is no number is unknown, not zero."""
    book = at_rate("4.00")
    stored = history(devices=[{"observed_at": EARLY}], held=[{"started_at": EARLY}])
    zero_window = charged(booked(stored, NOON, NOON), book).rows
    zero_gpus = charged(booked(history(devices=[]), NOON, NOON + HOUR), book).rows
    free_price = charged(booked(stored, NOON, NOON + HOUR), at_rate("0")).rows
    assert money(free_price, "capacity_parts") == 0
    assert free_price["capacity_parts"].null_count() == 0

    before = [{"started_at": EARLY, "ended_at": NOON}]
    unheld = history(devices=[{"observed_at": EARLY}], held=before)
    nobody = charged(booked(unheld, NOON, NOON + HOUR), book).rows
    none_at_all = totals(zero_gpus)
    ratio = {
        "allocated": nobody.select(share(leaf("used").sum(), allocated().sum())).item(),
        "total": none_at_all.select(share(leaf("used"), pl.col("wall_ticks"))).item(),
    }
    readings = [
        reading(NOON + n * MINUTE, known) for n, known in enumerate([0.5, 0.5, float("nan"), 0.5])
    ]
    told = booked(
        history(devices=[{"observed_at": EARLY}], held=[{"started_at": EARLY}], readings=readings),
        NOON,
        NOON + 3 * MINUTE,
    )
    is_unknown = 3 * told["unknown_ticks"].sum() == told["wall_ticks"].sum()
    told_nan = "dropped and counted in coverage" if is_unknown else "not counted"
    return Outcome(
        found={
            "zero_window": money(zero_window, "capacity_parts"),
            "zero_gpus": money(zero_gpus, "capacity_parts"),
            "utilisation_when_allocated_is_0": ratio["allocated"],
            "utilisation_when_total_is_0": ratio["total"],
            "nan_sample": told_nan,
        }
    )


def currency(_inputs: Mapping[str, object]) -> Outcome:
    """G20: two clusters in two currencies at one dated rate."""
    rate = ExchangeRate(
        from_currency="USD",
        to_currency="CNY",
        rate_micros=7_100_000,
        valid_from_at=EARLY,
        valid_until_at=None,
        exchange_rate_id=1,
    )
    spent = {"USD": 100, "CNY": 710}
    found = {
        f"total_{code.lower()}": converted(spent, code, at=NOON, rates=[rate]).total
        for code in ("USD", "CNY")
    }
    return Outcome(found=found, beside={"wrong_symbol_swap": found["total_usd"]})


def month_end(_inputs: Mapping[str, object]) -> Outcome:
    """G22: both named methods."""
    return Outcome(
        found={
            "linear_mtd": forecast.linear_month_to_date(
                Fraction(4_200), days_done=14, days_in_month=30
            ),
            "run_rate": forecast.run_rate(
                Fraction(4_200), recent_daily_mean=Fraction(320), days_left=16
            ),
        }
    )


RUNNERS: dict[str, Runner] = {
    "G01-partition": partition,
    "G02-price-change": price_change,
    "G03-node-join-leave": node_join_leave,
    "G04-dst": local_days,
    "G06-mig-geometry": mig_geometry,
    "G07-time-slice": time_slice,
    "G08-label-change": label_change,
    "G09-owner-resolution": owner_resolution,
    "G10-controlled-rounding": controlled_rounding,
    "G11-shared-split": shared_split,
    "G12-over-quota": over_quota,
    "G13-energy": energy,
    "G14-tco-rate": tco_rate,
    "G15-metric-gap": metric_gap,
    "G17-effective-request": effective_request,
    "G19-degenerate": degenerate,
    "G20-currency": currency,
    "G22-month-end": month_end,
}


@pytest.fixture(scope="module")
def cases(test_data: Path) -> dict[str, dict[str, object]]:
    """Return the golden cases by id."""
    return cases_of(test_data / "golden" / "gpu_cost_golden.json")


@pytest.mark.parametrize("case_id", RUNNERS)
def test_golden_gpu_cost(case_id: str, cases: dict[str, dict[str, object]]) -> None:
    case = cases[case_id]
    assert_told(case["expected"], RUNNERS[case_id](case["inputs"]))


def test_every_case_has_a_runner(cases: dict[str, dict[str, object]]) -> None:
    assert sorted(cases) == sorted(RUNNERS)
