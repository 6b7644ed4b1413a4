"""``steward demo`` and ``steward up``: the other commands as child processes, stopped together.

Standard library only: each child is ``python -m steward NAME``, so that no room is imported here.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steward import demo_folder
from steward.addresses import base_url, claim_port
from steward.catalogue import missing_part
from steward.children import ChildGroup, Ended, Stopped
from steward.command import Command, Context
from steward.demo_folder import DemoCard
from steward.errors import UsageError
from steward.settings import Resolved, Settings, resolve, stated_flags
from steward.settings.rules import TARGET
from steward.version import __version__

HEALTHY_WITHIN_S = 60.0
"""Seconds a server may take to answer: a cold Streamlit on two busy cores needs about ten."""
STEWARD = (sys.executable, "-m", "steward")


def add_demo_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``steward demo`` takes."""
    parser.add_argument("--exit", action="store_true", help="end after the health report")
    parser.add_argument("--fresh", action="store_true", help="build the fleet again")
    parser.add_argument(
        "--days", type=int, default=14, metavar="N", help="days to simulate (default 14)"
    )
    parser.add_argument(
        "--seed", type=int, default=7, metavar="N", help="same seed, same fleet (default 7)"
    )


def run_demo(args: argparse.Namespace, _context: Context) -> int:
    """Build the simulated fleet, print its health, and serve it until told to stop."""
    resolved = resolve(config=args.config, flags=stated_flags(vars(args)))
    settings = resolved.settings
    folder = demo_data_dir(resolved)
    ports = None if args.exit else claim_ports(settings, with_dashboard=has_dashboard())
    environ = child_environ(settings, data_dir=folder, config=args.config)
    card = DemoCard(version=__version__, day_count=args.days, seed=args.seed, is_complete=True)
    try:
        with ChildGroup(environ=environ) as group:
            code = _build(group, folder, card, is_fresh=args.fresh)
            code = code or group.run("report", [*STEWARD, "report", "health"])
            if code or ports is None:
                return code or _tell_how_to_see(args)
            return serve(group, settings, ports, scrape=(), is_collecting=False)
    except Stopped as stopped:
        note("stopped")
        return stopped.exit_code


def demo_data_dir(resolved: Resolved) -> Path:
    """Return the folder of the demonstration: the one that was named, else one beneath the default.

    The default folder itself is for real rows, which a demonstration must not mix with.
    """
    is_named = resolved.origins["data_dir"] != "default"
    return resolved.settings.data_dir if is_named else resolved.settings.data_dir / "demo"


def _build(group: ChildGroup, folder: Path, card: DemoCard, *, is_fresh: bool) -> int:
    if not is_fresh and demo_folder.read_card(folder) == card:
        note(f"the simulated fleet in {folder} is used again; --fresh builds it anew")
        return 0
    demo_folder.clear(folder)
    unfinished = DemoCard(
        version=card.version, day_count=card.day_count, seed=card.seed, is_complete=False
    )
    demo_folder.write_card(folder, unfinished)
    note(f"building a simulated fleet of {card.day_count} days in {folder}")
    days, seed = str(card.day_count), str(card.seed)
    code = group.run("import", [*STEWARD, "import", "simulated", "--days", days, "--seed", seed])
    code = code or group.run("ledger", [*STEWARD, "ledger", "build", "--quiet"])
    code = code or group.run("price", [*STEWARD, "price", "import", "--example"])
    if code == 0:
        demo_folder.write_card(folder, card)
    return code


def _tell_how_to_see(args: argparse.Namespace) -> int:
    place = f" --data-dir {args.data_dir}" if "data_dir" in args else ""
    note(f"run `steward demo{place}` to see the same fleet in the browser")
    return 0


def add_up_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``steward up`` takes."""
    parser.add_argument(
        "--scrape",
        nargs="+",
        action="extend",
        default=[],
        metavar="URL",
        help="exporters to scrape: host:port or http://host:port/metrics; added to the settings'",
    )
    parser.add_argument(
        "--kubernetes",
        dest="kubernetes.access",
        action="store_const",
        const="auto",
        default=argparse.SUPPRESS,  # the settings know the default
        help="watch the cluster of the kubeconfig, or of this pod",
    )
    parser.add_argument("--no-dashboard", action="store_true", help="collect and keep only")


def run_up(args: argparse.Namespace, context: Context) -> int:
    """Collect, keep and show a real cluster on this machine until told to stop."""
    settings = context.settings
    refuse_up(settings, args.scrape)
    ports = claim_ports(settings, with_dashboard=has_dashboard() and not args.no_dashboard)
    environ = child_environ(settings, data_dir=settings.data_dir, config=args.config)
    try:
        with ChildGroup(environ=environ) as group:
            return serve(group, settings, ports, scrape=args.scrape, is_collecting=True)
    except Stopped as stopped:
        note("stopped")
        return stopped.exit_code


def refuse_up(settings: Settings, scrape: Sequence[str]) -> None:
    """Refuse what would start nothing useful.

    Raises:
        UsageError: no target is named, one is no address, or the warehouse is elsewhere.
    """
    chosen = settings.collect
    is_watching = settings.kubernetes.access != "off"
    if not (scrape or chosen.targets or chosen.file_sd or chosen.http_sd or is_watching):
        raise UsageError(
            "there is nothing to scrape",
            hint="name exporters: `steward up --scrape http://node1:9400/metrics`, or watch a "
            "cluster: `steward up --kubernetes`",
        )
    faults = [f"{each!r} {fault}" for each in scrape if (fault := TARGET.fault(each)) is not None]
    if faults:
        raise UsageError(
            f"--scrape: {'; '.join(faults)}", hint="write host:port or http://host:port/metrics"
        )
    if settings.warehouse.url is not None:
        raise UsageError(
            f"a warehouse runs at {settings.warehouse.url} already, and `up` starts its own",
            hint="unset warehouse.url, or run `steward collect` and `steward dashboard`",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The TCP ports that were found free."""

    warehouse: int
    dashboard: int | None
    """None where no dashboard is to be served."""


def claim_ports(settings: Settings, *, with_dashboard: bool) -> Ports:
    """Return free ports before anything is started.

    Raises:
        PortInUseError: a port is taken.
    """
    warehouse, dashboard = settings.warehouse, settings.dashboard
    screens = None
    if with_dashboard:
        screens = claim_port(dashboard.host, dashboard.port, purpose="the dashboard")
    return Ports(
        warehouse=claim_port(warehouse.host, warehouse.port, purpose="the warehouse"),
        dashboard=screens,
    )


def has_dashboard() -> bool:
    """Tell whether the dashboard's library is installed; say how to get it where it is not."""
    if importlib.util.find_spec("streamlit") is not None:
        return True
    lacking = missing_part(ModuleNotFoundError(name="streamlit"))
    note(f"no dashboard: {lacking.message}; {lacking.hint}")
    return False


def child_environ(settings: Settings, *, data_dir: Path, config: Path | None) -> Mapping[str, str]:
    """Return what every child is told: the same settings, on this machine's own warehouse."""
    told = {
        "STEWARD_DATA_DIR": str(data_dir.absolute()),
        "STEWARD_LOG_LEVEL": settings.log.level,
        "STEWARD_LOG_FORMAT": settings.log.format,
        "STEWARD_KUBERNETES_ACCESS": settings.kubernetes.access,
        "STEWARD_WAREHOUSE_URL": "",
        "PYTHONUNBUFFERED": "1",
    }
    if config is not None:
        told["STEWARD_CONFIG"] = str(config.absolute())
    return {**os.environ, **told}


def serve(
    group: ChildGroup,
    settings: Settings,
    ports: Ports,
    *,
    scrape: Sequence[str],
    is_collecting: bool,
) -> int:
    """Start warehouse, collector and dashboard, and return once one of them ends."""
    address = base_url(settings.warehouse.host, ports.warehouse)
    group.start("warehouse", [*STEWARD, "warehouse", "--port", str(ports.warehouse)])
    ended = group.wait_healthy("warehouse", f"{address}/health", timeout_s=HEALTHY_WITHIN_S)
    if ended is not None:
        return _tell_ended(ended)
    say(f"warehouse  {address}")
    if is_collecting:
        flags = ["--scrape", *scrape] if scrape else []
        environ = client_environ(settings, address, is_writer=True)
        group.start("collect", [*STEWARD, "collect", *flags], environ=environ)
        say(f"collect    every {settings.collect.interval_s:g} s")
        follow_ledger(group, settings, address)
    if ports.dashboard is not None:
        ended = _serve_dashboard(group, settings, ports.dashboard, warehouse=address)
    if ended is None:
        say("press Ctrl-C to stop")
        ended = group.watch()
    return _tell_ended(ended)


def follow_ledger(group: ChildGroup, settings: Settings, address: str) -> None:
    """Let the ledger be built as hours close, where a token that may read and append is known."""
    environ = builder_environ(settings, address)
    if environ is None:
        note("no ledger is built: reports are slower; set warehouse.admin_tokens")
        return
    group.start("ledger", [*STEWARD, "ledger", "build", "--follow"], environ=environ)


def builder_environ(settings: Settings, address: str) -> Mapping[str, str] | None:
    """Return where the warehouse is, and a token that may both read and append; None: none may."""
    tokens = settings.warehouse
    told = {"STEWARD_WAREHOUSE_URL": address}
    if not (tokens.writer_tokens or tokens.reader_tokens or tokens.admin_tokens):
        return told
    both = (
        *tokens.admin_tokens,
        *(each for each in tokens.writer_tokens if each in tokens.reader_tokens),
    )
    return {**told, "STEWARD_WAREHOUSE_TOKEN": both[0]} if both else None


def _serve_dashboard(
    group: ChildGroup, settings: Settings, port: int, *, warehouse: str
) -> Ended | None:
    address = base_url(settings.dashboard.host, port)
    group.start(
        "dashboard",
        [*STEWARD, "dashboard", "--port", str(port)],
        environ=client_environ(settings, warehouse, is_writer=False),
    )
    ended = group.wait_healthy("dashboard", f"{address}/_stcore/health", timeout_s=HEALTHY_WITHIN_S)
    if ended is None:
        say(f"dashboard  {address}")
    return ended


def client_environ(settings: Settings, address: str, *, is_writer: bool) -> Mapping[str, str]:
    """Return where the child finds the warehouse, and a token that its role needs."""
    tokens = settings.warehouse
    of_role = tokens.writer_tokens if is_writer else tokens.reader_tokens
    known = [each for each in (tokens.token, *of_role, *tokens.admin_tokens) if each is not None]
    told = {"STEWARD_WAREHOUSE_URL": address}
    return {**told, "STEWARD_WAREHOUSE_TOKEN": known[0]} if known else told


def _tell_ended(ended: Ended) -> int:
    """Name the child that ended by itself, which a server never should."""
    sys.stderr.write(
        f"error: {ended.name} ended with exit code {ended.exit_code}; the others are stopped too\n"
        "hint: its own message stands above\n"
    )
    return ended.exit_code or 1


def note(line: str) -> None:
    """Print one line about progress to standard error: standard output is for results."""
    sys.stderr.write(f"{line}\n")


def say(line: str) -> None:
    """Print one line of the result to standard output, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


DEMO = Command(
    name="demo",
    summary="Build a simulated fleet, print its health and serve its screens",
    add_arguments=add_demo_arguments,
    run=run_demo,
)
UP = Command(
    name="up",
    summary="Collect, keep and show a real cluster on this machine",
    add_arguments=add_up_arguments,
    run=run_up,
)
