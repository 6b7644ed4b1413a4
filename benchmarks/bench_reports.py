"""Building the ledger and every report on two large pasts, beside the same figures in pandas.

30 days of 1,000 GPUs by minute: the ledger is built from readings, then each report is made from
the ledger, and the figures of utilisation once more from the readings with plain pandas. One year
of 8,000 GPUs by hour: each report from the ledger. Every measurement is a process of its own, so
that its peak memory is its own. ``--scale 0.1`` shrinks both fleets. Takes about ten minutes.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.report_worlds import (  # noqa: E402 - path set first
    START_AT,
    Fleet,
    by_hour,
    by_minute,
)

RUN_COUNT: Final = 3
REPORT_AIM_S: Final = 1.0
MEMORY_AIM_BYTES: Final = 4 * 10**9
PANDAS_LIMIT_S: Final = 300.0
PANDAS_LIMIT_BYTES: Final = 16 * 10**9
MINUTES: Final = Fleet(gpu_count=1_000, day_count=30, run_hours=12, pause_hours=1)
HOURS: Final = Fleet(gpu_count=8_000, day_count=365, run_hours=66, pause_hours=6)
SKIPPED: Final = frozenset({"devices"})
"""Reports of the newest reading alone: they do not depend on the length of the past."""


def child(*arguments: str, limit_s: float | None = None) -> dict[str, Any] | None:
    """Run one measurement in a fresh process; None where it did not end well."""
    command = [sys.executable, __file__, *arguments]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        print(f"  {' '.join(arguments[:2])} failed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_bytes() -> int:
    """Return the most memory this process has had resident.

    Not ``ru_maxrss``: at its start a process inherits that of the one that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [each for each in status.splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def build_ledger(folder: str) -> dict[str, Any]:
    """Build the ledger of all closed hours, as ``steward ledger build`` does."""
    started_s = time.perf_counter()
    command = [sys.executable, "-m", "steward", "ledger", "build", "--data-dir", folder]
    subprocess.run(command, check=True, capture_output=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {"took_s": time.perf_counter() - started_s, "peak_bytes": children}


def make_report(folder: str, name: str, day_count: str) -> dict[str, Any]:
    """Make one report several times over the whole past; return its seconds."""
    from datetime import timedelta  # noqa: PLC0415  # only in the measuring process

    from analytics.reports.catalogue import REPORTS  # noqa: PLC0415  # only in this process
    from analytics.reports.model import Question  # noqa: PLC0415  # only in this process
    from dashboard.reports import load  # noqa: PLC0415  # only in this process
    from sql.access import open_warehouse  # noqa: PLC0415  # only in this process
    from steward.period import Period  # noqa: PLC0415  # only in this process
    from steward.settings import resolve  # noqa: PLC0415  # only in this process

    settings = resolve(config=None, flags={"data_dir": folder}).settings
    definition = REPORTS[name]
    question = Question(period=Period(START_AT, START_AT + timedelta(days=int(day_count))))
    seconds = []
    with open_warehouse(settings) as warehouse:
        for _ in range(RUN_COUNT):
            started_s = time.perf_counter()
            definition.build(load.frames(warehouse, definition, question), question)
            seconds.append(time.perf_counter() - started_s)
    return {"p50_s": statistics.median(seconds), "peak_bytes": peak_bytes()}


def with_pandas(folder: str) -> dict[str, Any]:
    """Return apparent and effective utilisation and idle GPU-hours by team, in plain pandas."""
    import duckdb  # noqa: PLC0415  # only in this process
    import pandas as pd  # noqa: PLC0415  # only in this process

    resource.setrlimit(resource.RLIMIT_AS, (PANDAS_LIMIT_BYTES, PANDAS_LIMIT_BYTES))
    started_s = time.perf_counter()
    with duckdb.connect(f"{folder}/warehouse.duckdb", read_only=True) as connection:
        samples = connection.execute(
            "select sampled_at, device_uuid, busy_ratio, sm_active_ratio, tensor_active_ratio, "
            "dram_active_ratio, fp32_active_ratio from device_sample"
        ).df()
        held = connection.execute(
            "select started_at, ended_at, device_uuid, tenant_id from allocation"
        ).df()
    joined = pd.merge_asof(
        samples.sort_values("sampled_at"),
        held.sort_values("started_at"),
        left_on="sampled_at",
        right_on="started_at",
        by="device_uuid",
    )
    joined.loc[joined["sampled_at"] > joined["ended_at"], "tenant_id"] = None
    compute = joined[["tensor_active_ratio", "fp32_active_ratio"]].max(axis=1) / 0.93
    limit = (
        pd.concat([compute, joined["dram_active_ratio"] / 0.8], axis=1).max(axis=1).clip(upper=1)
    )
    joined["effective"] = pd.concat([limit, joined["sm_active_ratio"]], axis=1).min(axis=1)
    joined["idle"] = (joined["sm_active_ratio"] < 0.01) & (joined["dram_active_ratio"] < 0.01)
    found = joined.groupby("tenant_id").agg(
        apparent=("busy_ratio", "mean"), effective=("effective", "mean"), idle=("idle", "sum")
    )
    took_s = time.perf_counter() - started_s
    return {"took_s": took_s, "peak_bytes": peak_bytes(), "team_count": len(found)}


def gigabytes(count: float) -> str:
    """Return bytes for people."""
    return f"{count / 1e9:.2f} GB"


def reports(folder: str, fleet: Fleet, *, scale: str) -> None:
    """Measure every report over the whole past and print it beside its aim."""
    from analytics.reports.catalogue import REPORTS  # noqa: PLC0415  # loads Polars

    slow = []
    for name in REPORTS:
        if name in SKIPPED:
            continue
        found = child("report", folder, name, str(fleet.day_count))
        if found is None:
            slow.append(name)
            continue
        is_kept = found["p50_s"] <= REPORT_AIM_S and found["peak_bytes"] <= MEMORY_AIM_BYTES
        slow += [] if is_kept else [name]
        print(f"  report {name:<14} p50 {found['p50_s']:6.2f} s (n={RUN_COUNT}), "
              f"peak {gigabytes(found['peak_bytes'])}")  # fmt: skip
    print(f"  outside the aims of {REPORT_AIM_S:g} s and {gigabytes(MEMORY_AIM_BYTES)} "
          f"({scale}): {', '.join(slow) or 'none'}")  # fmt: skip


def minutes(folder: str, fleet: Fleet) -> None:
    """Measure the past by minute."""
    count = by_minute(Path(folder), fleet)
    scale = f"{fleet.gpu_count:,} GPUs x {fleet.day_count} days by minute"
    print(f"{scale}: {count:,} readings")
    built = child("build", folder)
    if built is None:
        return
    print(f"  ledger built in {built['took_s']:.1f} s: {count / built['took_s']:,.0f} readings/s, "
          f"peak {gigabytes(built['peak_bytes'])}")  # fmt: skip
    reports(folder, fleet, scale=scale)
    plain = child("pandas", folder, limit_s=PANDAS_LIMIT_S)
    if plain is None:
        print(f"  plain pandas: did not finish within {PANDAS_LIMIT_S:g} s and "
              f"{gigabytes(PANDAS_LIMIT_BYTES)}")  # fmt: skip
        return
    ours = child("report", folder, "utilization", str(fleet.day_count))
    ratio = plain["took_s"] / ours["p50_s"] if ours else float("nan")
    print(f"  plain pandas, utilisation by team alone: {plain['took_s']:.1f} s, peak "
          f"{gigabytes(plain['peak_bytes'])}: {ratio:.1f} x the time of the whole report from the "
          f"ledger, {plain['took_s'] / built['took_s']:.2f} x that of building it")  # fmt: skip


def hours(folder: str, fleet: Fleet) -> None:
    """Measure the past by hour."""
    started_s = time.perf_counter()
    count = by_hour(Path(folder), fleet)
    scale = f"{fleet.gpu_count:,} GPUs x {fleet.day_count} days by hour"
    print(f"{scale}: {count:,} ledger rows, written in {time.perf_counter() - started_s:.0f} s")
    reports(folder, fleet, scale=scale)


def scaled(fleet: Fleet, scale: float) -> Fleet:
    """Return a smaller fleet of whole nodes."""
    return replace(fleet, gpu_count=max(8, int(fleet.gpu_count * scale) // 8 * 8))


def main() -> None:
    """Run one measurement, or all of them."""
    steps = {"build": build_ledger, "report": make_report, "pandas": with_pandas}
    if len(sys.argv) > 1 and sys.argv[1] in steps:
        print(json.dumps(steps[sys.argv[1]](*sys.argv[2:])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="part of the GPUs (default 1)")
    scale = parser.parse_args().scale
    for measure, fleet in ((minutes, MINUTES), (hours, HOURS)):
        with tempfile.TemporaryDirectory() as folder:
            measure(folder, scaled(fleet, scale))


if __name__ == "__main__":
    main()
