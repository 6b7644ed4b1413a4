"""The laws of cost, numbered as in ``docs/cost-rules.md``.

Fleets, prices and rules are random; every comparison is exact. Laws of stored histories, and of
statements and time, are in files of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import msgspec
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analytics.cost.assets import GpuCount, component_rates, node_cost, node_price, physical_share
from analytics.cost.charge import LEAF_PARTS, PARTS, allocated_parts, charge, costs
from analytics.cost.currency import converted
from analytics.cost.idle import Allocated, Asset, Level, idle_cost
from analytics.cost.rounding import (
    Exact,
    apportioned,
    minor_units,
    money_text,
    parts_of,
    parts_per_minor,
    printed,
    shared_out,
    units_of,
)
from analytics.cost.rounding_frames import minor_as_text, minor_per_row, with_minor
from analytics.cost.settle import IDLE, Line, Rules, printed_bills, settle
from analytics.cost.shares import (
    MigBasis,
    Slices,
    active_shares,
    even_use,
    mig_shares,
    replica_shares,
)
from analytics.cost.split import SplitRule
from analytics.usage import TREE, share
from collector.lifecycle.requests import request_of
from collector.sources.kubernetes.objects import PodSpec
from tests.support.analytics_frames import MINUTE, NOON
from tests.support.cost_worlds import (
    END,
    LENGTH_MINUTES,
    Piece,
    books,
    cuts_of,
    fleets,
    ledger_of,
    plain_cost,
)
from tests.support.kubernetes_objects import pod_spec

pytestmark = pytest.mark.timeout(600)
EXAMPLES = settings(max_examples=200)
AMOUNTS = st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=5_040)
COSTS = st.fractions(min_value=0, max_value=10**6, max_denominator=840)
CURRENCIES = st.sampled_from(["USD", "CNY", "JPY", "KWD"])
OWNERS = st.sampled_from(["a", "b", "c", "unattributed"])
RESOURCES = st.sampled_from(["H100", "T4"])
PLACES = st.sampled_from(["c1", "c2"])
GROUPINGS = st.lists(
    st.sampled_from(["cluster", "node", "model", "tenant_id", "queue", "is_held"]),
    max_size=3,
    unique=True,
)


def charged(pieces: list[Piece], book: pl.DataFrame, *cuts: object) -> pl.DataFrame:
    """Return the charged ledger of a fleet."""
    return charge(ledger_of(pieces, cuts_of(book, *cuts)), book).rows  # type: ignore[arg-type]  # instants


def summed(frame: pl.DataFrame) -> dict[str, int]:
    """Return the sum of every amount."""
    found: dict[str, int] = frame.select(pl.col(PARTS).sum()).row(0, named=True)
    return found


@given(fleets(), books(), GROUPINGS, CURRENCIES)
@EXAMPLES
def test_invariant_01_conservation(
    fleet: list[Piece], book: pl.DataFrame, keys: list[str], currency: str
) -> None:
    rows = charged(fleet, book.with_columns(currency=pl.lit(currency)))
    assert rows["capacity_parts"].to_list() == rows[list(LEAF_PARTS)].sum_horizontal().to_list()
    assert units_of(summed(rows)["capacity_parts"]) == plain_cost(fleet, book)

    by_keys = costs(rows, *keys)
    assert summed(by_keys) == summed(rows)

    told = {str(key): row["capacity_parts"] for key, row in enumerate(by_keys.to_dicts())}
    whole = minor_units(summed(rows)["capacity_parts"], currency)
    assert sum(printed(told, currency).values()) == whole
    minor = with_minor(by_keys, parts="capacity_parts", ties=keys)["capacity_minor"]
    assert minor.sum() == whole

    held = rows.filter("is_held")
    teams = summed(held)["capacity_parts"]
    unallocated = sum(summed(rows)[f"{name}_parts"] for name in list(TREE)[3:])
    assert teams + unallocated == summed(rows)["capacity_parts"]


LINES = st.lists(
    st.builds(
        lambda owner, place, costs, is_shared: Line(
            owner=owner, place=place, costs=costs, is_shared=is_shared
        ),
        OWNERS,
        PLACES,
        st.dictionaries(RESOURCES, COSTS, max_size=2),
        st.booleans(),
    ),
    max_size=8,
)
IDLES = st.dictionaries(st.tuples(PLACES, RESOURCES), COSTS, max_size=4)
RULES = st.builds(
    lambda shares_idle, rule, custom, overhead: Rules(
        shares_idle=shares_idle, rule=rule, custom=custom, overhead=overhead
    ),
    st.booleans(),
    st.sampled_from(SplitRule),
    st.dictionaries(OWNERS, st.integers(0, 5), max_size=4),
    COSTS,
)


def amount_of(lines: list[Line], idle: Mapping[object, Exact], rules: Rules) -> Fraction:
    """Return what bills must add up to."""
    direct = sum((Fraction(cost) for line in lines for cost in line.costs.values()), Fraction(0))
    return direct + sum(map(Fraction, idle.values()), Fraction(0)) + Fraction(rules.overhead)


@given(LINES, IDLES, RULES, RULES)
@EXAMPLES
def test_invariant_02_option_invariance(
    lines: list[Line], idle: dict[tuple[str, str], Fraction], rules: Rules, others: Rules
) -> None:
    told = settle(lines, idle=idle, rules=rules)
    assert told.total == amount_of(lines, idle, rules)
    other = settle(lines, idle=idle, rules=others)
    assert told.total - rules.overhead == other.total - others.overhead

    merged: dict[tuple[str, str], Fraction] = {}
    for (place, resource), cost in idle.items():
        merged[place[0], resource] = merged.get((place[0], resource), Fraction(0)) + cost
    by_cluster = [
        Line(owner=one.owner, place=one.place[0], costs=one.costs, is_shared=one.is_shared)
        for one in lines
    ]
    assert settle(by_cluster, idle=merged, rules=rules).total == told.total

    one = [
        Line(owner="all", place=line.place, costs=line.costs, is_shared=line.is_shared)
        for line in lines
    ]
    assert settle(one, idle=idle, rules=rules).total == told.total
    direct = {name: bill.direct for name, bill in told.bills.items() if bill.direct}
    assert direct == {name: bill.direct for name, bill in other.bills.items() if bill.direct}

    shown = Rules(rule=rules.rule, custom=rules.custom, overhead=rules.overhead)
    spread = replace(shown, shares_idle=True)
    no_pool = [line for line in lines if not line.is_shared]
    overheads = [
        {name: bill.overhead for name, bill in settle(no_pool, idle=idle, rules=one).bills.items()}
        for one in (shown, spread)
    ]
    assert overheads[0].keys() - overheads[1].keys() <= {IDLE}
    assert all(overheads[0][name] == amount for name, amount in overheads[1].items() if amount)


@given(fleets(), books(), st.lists(st.integers(1, LENGTH_MINUTES - 1), max_size=5), GROUPINGS)
@EXAMPLES
def test_invariant_03_additivity(
    fleet: list[Piece], book: pl.DataFrame, minutes: list[int], keys: list[str]
) -> None:
    whole = charged(fleet, book)
    steps = charged(fleet, book, *(NOON + minute * MINUTE for minute in minutes))
    assert_frame_equal(costs(whole, *keys), costs(steps, *keys))
    ends = sorted({NOON, END, *(NOON + minute * MINUTE for minute in minutes)})
    windows = [
        steps.filter(pl.col("started_at") >= start, pl.col("ended_at") <= end)
        for start, end in pairwise(ends)
    ]
    totals = [summed(window) for window in windows]
    assert {name: sum(each[name] for each in totals) for name in PARTS} == summed(whole)
    if keys:
        coarse = keys[:1]
        rolled = costs(whole, *keys).group_by(*coarse, "currency").agg(pl.col(PARTS).sum())
        sorted_rows = rolled.sort(*coarse, "currency", nulls_last=True)
        assert_frame_equal(sorted_rows, costs(whole, *coarse).drop("wall_ticks"))


NODE_COSTS = st.dictionaries(RESOURCES, COSTS, max_size=2)


@given(
    st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.tuples(PLACES, NODE_COSTS), min_size=1),
    st.lists(st.tuples(st.sampled_from(["n1", "n2", "n3"]), NODE_COSTS), max_size=4),
    fleets(),
    books(),
)
@EXAMPLES
def test_invariant_04_non_negativity(
    nodes: dict[str, tuple[str, dict[str, Fraction]]],
    held: list[tuple[str, dict[str, Fraction]]],
    fleet: list[Piece],
    book: pl.DataFrame,
) -> None:
    rows = charged(fleet, book)
    assert all((rows[name] >= 0).all() for name in PARTS)

    assets = [Asset(cluster=c, node=node, costs=told) for node, (c, told) in nodes.items()]
    allocated = [
        Allocated(cluster=nodes[node][0], node=node, costs=told)
        for node, told in held
        if node in nodes
    ]
    by_node = idle_cost(assets, allocated, level=Level.NODE)
    by_cluster = idle_cost(assets, allocated, level=Level.CLUSTER)
    assert all(amount is None or amount >= 0 for amount in by_node.shown().values())
    negative = {where for where, amount in by_node.exact.items() if amount < 0}
    assert {(fault.node, fault.resource) for fault in by_node.faults} == negative
    assert by_cluster.faults == by_node.faults
    assert sum(by_node.exact.values()) == sum(by_cluster.exact.values())
    if negative:
        with pytest.raises(ValueError, match="is negative"):
            settle([], idle=by_node.exact, rules=Rules())


@given(fleets(), books(), st.one_of(st.none(), st.fractions(0, 1)), st.integers(1, 8))
@EXAMPLES
def test_invariant_05_bound(
    fleet: list[Piece], book: pl.DataFrame, used: Fraction | None, sharers: int
) -> None:
    rows = charged(fleet, book).with_columns(allocated=allocated_parts())
    assert (rows["used_parts"] <= rows["allocated"]).all()
    assert (rows["allocated"] <= rows["capacity_parts"]).all()

    uses = even_use(used, [f"p{number}" for number in range(sharers)])
    told = [use for use in uses.values() if use is not None]
    assert (sum(told) == used) if used is not None else (told == [])


@given(fleets(), books(), st.integers(1, LENGTH_MINUTES - 1), st.integers(0, 9_999_999))
@EXAMPLES
def test_invariant_06_effective_dating(
    fleet: list[Piece], book: pl.DataFrame, minute: int, rate: int
) -> None:
    rows = charged(fleet, book)
    for name in ("capacity_parts", "down_parts"):
        leaf = None if name == "capacity_parts" else "down_ticks"
        assert units_of(summed(rows)[name]) == plain_cost(fleet, book, leaf)

    later = NOON + minute * MINUTE
    until = pl.min_horizontal("valid_until_at", pl.lit(later).dt.cast_time_unit("us"))
    kept = book.filter(pl.col("valid_from_at") < later).with_columns(valid_until_at=until)
    fresh = book.filter(pl.col("valid_from_at") < later).unique("gpu_model", maintain_order=True)
    fresh = fresh.with_columns(
        valid_from_at=pl.lit(later).dt.cast_time_unit("us"),
        valid_until_at=pl.lit(None, dtype=book.schema["valid_until_at"]),
        rate_micros=pl.lit(rate, dtype=pl.Int64),
    )
    changed = charged(fleet, pl.concat([kept, fresh]), later)
    before = pl.col("ended_at") <= later
    assert summed(changed.filter(before)) == summed(charged(fleet, book, later).filter(before))


SLICES = st.sampled_from([Slices(1, 1), Slices(1, 2), Slices(2, 2), Slices(3, 4), Slices(4, 4)])
SPAN = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda ends: (min(ends), max(ends)))


@given(
    st.lists(SLICES, max_size=7),
    st.sampled_from(MigBasis),
    st.dictionaries(st.sampled_from("pqrs"), st.lists(SPAN, max_size=1), max_size=4),
)
@EXAMPLES
def test_invariant_10_shares_of_a_device_are_the_device(
    slices: list[Slices], basis: MigBasis, holders: dict[str, list[tuple[int, int]]]
) -> None:
    held: dict[str, Slices] = {}
    for number, one in enumerate(slices):
        compute = sum(each.compute for each in held.values()) + one.compute
        memory = sum(each.memory for each in held.values()) + one.memory
        if compute <= 7 and memory <= 8:
            held[f"i{number}"] = one
    shares = mig_shares(held, basis)
    assert sum(shares.values()) == 1
    assert all(share >= 0 for share in shares.values())
    assert len(shares) == len(held) + 1

    for told in (replica_shares(holders, (0, 60), replicas=4), active_shares(holders, (0, 60))):
        assert sum(told.values()) == 1
        assert all(share >= 0 for share in told.values())
    count = GpuCount(physical=2, virtual=8)
    assert physical_share(count.virtual or 0, count) == count.physical


CONTAINERS = st.lists(st.integers(0, 8), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), max_size=4), CONTAINERS)
@EXAMPLES
def test_invariant_11_effective_request(inits: list[tuple[int, bool]], apps: list[int]) -> None:
    def container(gpus: int, *, is_sidecar: bool = False) -> dict[str, object]:
        policy = {"restartPolicy": "Always"} if is_sidecar else {}
        return {"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}, **policy}

    spec = {
        **pod_spec(),
        "initContainers": [container(gpus, is_sidecar=sidecar) for gpus, sidecar in inits],
        "containers": [container(gpus) for gpus in apps],
    }
    sidecars = 0
    peaks = [0]
    for gpus, is_sidecar in inits:
        sidecars += gpus if is_sidecar else 0
        peaks.append(sidecars if is_sidecar else gpus)
    assert request_of(msgspec.convert(spec, PodSpec)).gpu_count == max(*peaks, sidecars + sum(apps))


@given(fleets(), books(complete=False))
@EXAMPLES
def test_invariant_12_unknown_is_not_zero(fleet: list[Piece], book: pl.DataFrame) -> None:
    told = charge(ledger_of(fleet, cuts_of(book)), book)
    known = set(book["gpu_model"])
    is_priced = pl.col("model").is_in(known)
    assert told.rows.filter(is_priced)[list(PARTS)].null_count().sum_horizontal().item() == 0
    missing = told.rows.filter(~is_priced)
    assert all(missing[name].null_count() == missing.height for name in PARTS)
    assert set(told.unpriced["model"]) == set(missing["model"])
    hours = missing["wall_ticks"].sum() / (3_600 * 5_040 * 10**6)
    assert told.unpriced["gpu_hours"].sum() == pytest.approx(hours)
    by_model = costs(told.rows, "model")
    assert by_model.filter(~is_priced)["capacity_parts"].null_count() == len(set(missing["model"]))

    ratios = told.rows.select(share(pl.col("used_parts"), pl.col("capacity_parts"))).to_series()
    assert not ratios.is_nan().any()
    assert not ratios.is_infinite().any()
    assert node_price(1, gpus=1, per_gpu=None) is None
    assert converted({"USD": 1}, "CNY", at=NOON, rates=()).total is None


COMPONENTS = st.sampled_from(["cpu", "ram", "gpu"])


@given(
    st.dictionaries(COMPONENTS, COSTS, min_size=1),
    st.dictionaries(COMPONENTS, COSTS),
    st.one_of(st.none(), COSTS),
)
@EXAMPLES
def test_invariant_13_component_rates_sum_to_the_node_price(
    base: dict[str, Fraction], amounts: dict[str, Fraction], price: Fraction | None
) -> None:
    rates = component_rates(base, amounts, node_price=price)
    if rates is None:
        assert node_cost(base, amounts) == 0
        return
    assert node_cost(rates, amounts) == (node_cost(base, amounts) if price is None else price)
    for (one, rate), (other, listed) in product(rates.items(), base.items()):
        assert rate * listed == rates[other] * base[one]


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), AMOUNTS, max_size=8),
    CURRENCIES,
    st.dictionaries(OWNERS, st.integers(0, 9), min_size=1),
    st.integers(-(10**6), 10**6),
)
@EXAMPLES
def test_invariant_14_rounding(
    amounts: dict[str, Fraction], currency: str, weights: dict[str, int], total: int
) -> None:
    parts = {key: parts_of(amount) for key, amount in amounts.items()}
    whole = minor_units(sum(parts.values()), currency)
    children = printed(parts, currency)
    assert sum(children.values()) == whole
    assert apportioned(dict(reversed(amounts.items()))).items() == apportioned(amounts).items()
    exact = printed(parts, currency, total=whole)
    assert exact == children
    for key, amount in amounts.items():
        rest = Fraction(children[key]) - amount * parts_of(1) / parts_per_minor(currency)
        assert abs(rest) < 1
    if any(weights.values()):
        assert sum(shared_out(total, weights).values()) == total

    frame = pl.DataFrame(
        {
            "key": list(amounts),
            "parts": [int(part) for part in parts.values()],
            "currency": [currency] * len(amounts),
        },
        schema={"key": pl.String, "parts": pl.Int128, "currency": pl.String},
    )
    whole_parts = dict(zip(frame["key"], frame["parts"], strict=True))
    told = with_minor(frame.rename({"parts": "cost_parts"}), parts="cost_parts", ties=("key",))
    assert dict(zip(told["key"], told["cost_minor"], strict=True)) == printed(whole_parts, currency)
    alone = frame.select(minor_per_row()).to_series().to_list()
    assert alone == [minor_units(part, currency) for part in whole_parts.values()]
    text = frame.select(minor_as_text(minor_per_row())).to_series().to_list()
    assert text == [money_text(part, currency) for part in whole_parts.values()]


@given(LINES, IDLES, RULES, CURRENCIES)
@EXAMPLES
def test_printed_bills_add_up_both_ways(
    lines: list[Line], idle: dict[tuple[str, str], Fraction], rules: Rules, currency: str
) -> None:
    in_parts = [
        Line(
            owner=line.owner,
            place=line.place,
            costs={name: parts_of(cost) for name, cost in line.costs.items()},
            is_shared=line.is_shared,
        )
        for line in lines
    ]
    told = settle(
        in_parts, idle={where: parts_of(cost) for where, cost in idle.items()}, rules=rules
    )
    rows = printed_bills(told.bills, currency)
    assert sum(row["total"] for row in rows.values()) == minor_units(told.total, currency)
    for row in rows.values():
        assert sum(amount for name, amount in row.items() if name != "total") == row["total"]
    assert rows.keys() == told.bills.keys()
