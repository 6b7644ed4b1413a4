"""``steward capability``: what GPU models can do, and what the house says of them instead."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from steward.command import Command, Context
from steward.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from analytics.capability_table import Model

FORMATS: Final = ("table", "json", "csv")
TIERS: Final = ("S", "A", "B", "C", "D")
GIB_BYTES: Final = 1_073_741_824
COLUMNS: Final = (
    "gpu_model",
    "tier",
    "memory_gb",
    "compute_tflops",
    "bandwidth_gb_per_s",
    "generation",
    "link",
    "mig",
    "source",
)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    listed = parts.add_parser("list", help="the table of models, or what is recorded over it")
    listed.add_argument("--recorded", action="store_true", help="only what is recorded here")
    listed.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    stated = parts.add_parser("set", help="record the tier of a model; the last record counts")
    stated.add_argument("--model", required=True, metavar="NAME", help="as any source spells it")
    stated.add_argument("--tier", required=True, choices=TIERS, help="S strongest to D")
    stated.add_argument("--memory-gib", type=float, metavar="GIB", help="of one GPU")
    stated.add_argument("--source", default="stated by hand", help="where it comes from")
    stated.add_argument("--author", metavar="NAME", help="default: who runs the command")


def _run(args: argparse.Namespace, context: Context) -> int:
    return _run_set(args, context) if args.part == "set" else _run_list(args, context)


def _run_list(args: argparse.Namespace, context: Context) -> int:
    from dashboard.prices.listing import listing  # noqa: PLC0415  # only once it is called
    from dashboard.prices.store import rows  # noqa: PLC0415  # loads Polars
    from sql.access import open_warehouse  # noqa: PLC0415  # loads DuckDB

    if args.recorded:
        with open_warehouse(context.settings) as warehouse:
            shown = _recorded(rows(warehouse, "capability"))
    else:
        from analytics.capability_table import MODELS  # noqa: PLC0415  # only once it is called

        shown = [_known(model) for model in MODELS]
    empty = "nothing is recorded; start with: steward capability set --help"
    sys.stdout.write(listing(shown, COLUMNS, form=args.format, empty=empty))
    return 0


def _recorded(rows: pl.DataFrame) -> list[dict[str, object]]:
    """Return every record, the last recorded last."""
    return [
        {**row, "memory_gb": _gib(row["memory_bytes"])}
        for row in rows.sort("capability_id").to_dicts()
    ]


def _gib(memory_bytes: int | None) -> float | None:
    return None if memory_bytes is None else round(memory_bytes / GIB_BYTES, 1)


def _known(model: Model) -> dict[str, object]:
    from analytics.capability import tier_of  # noqa: PLC0415  # loads Polars

    words = " ".join(sorted(model.words, key=lambda word: (not word.isalpha(), word)))
    return {
        "gpu_model": words if model.form is None else f"{words} {model.form}",
        "tier": tier_of(model.compute_tflops, model.bandwidth_gb_per_s),
        "memory_gb": model.memory_gb,
        "compute_tflops": model.compute_tflops,
        "bandwidth_gb_per_s": model.bandwidth_gb_per_s,
        "generation": model.generation,
        "link": model.link,
        "mig": "yes" if model.has_mig else "no",
        "source": model.source,
    }


def _run_set(args: argparse.Namespace, context: Context) -> int:
    from dashboard.prices.words import person  # noqa: PLC0415  # only once it is called
    from sql.access import open_warehouse  # noqa: PLC0415  # loads DuckDB

    memory = None if args.memory_gib is None else round(args.memory_gib * GIB_BYTES)
    if memory is not None and memory <= 0:
        raise UsageError(
            f"--memory-gib {args.memory_gib} is no size", hint="give the memory of one GPU"
        )
    row = {
        "gpu_model": args.model,
        "tier": args.tier,
        "memory_bytes": memory,
        "source": args.source,
        "author": person(args.author),
    }
    with open_warehouse(context.settings) as warehouse:
        stored = warehouse.state_insert("capability", row)
    sys.stdout.write(f"capability {stored['capability_id']}: {args.model} is of tier {args.tier}\n")
    return 0


CAPABILITY = Command(
    name="capability",
    summary="List what GPU models can do, and record what the house says instead",
    add_arguments=_arguments,
    run=_run,
)
