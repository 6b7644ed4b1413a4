"""One report from a warehouse in one call: for notebooks and scripts.

``ask("cost", period="last-month", by="team").table("by_team")`` is a Polars frame.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analytics.reports.catalogue import REPORTS
from analytics.reports.model import Report
from dashboard.reports.load import Asked, prepared
from sql.access import open_warehouse
from steward.errors import UsageError
from steward.settings import Settings, load


def ask(  # noqa: PLR0913  # reads as the command line does
    name: str,
    *,
    period: str | None = None,
    by: str | None = None,
    cluster: str | None = None,
    zone: str = "UTC",
    currency: str | None = None,
    fits: str | None = None,
    data_dir: Path | str | None = None,
    url: str | None = None,
    token: str | None = None,
) -> Report:
    """Return a report over stored rows.

    Args:
        name: which report; ``analytics.reports.REPORTS`` lists them.
        period: such as ``last-month``, ``2026-05``, ``last-7d``; None: all stored rows.
        by: what to group by; None leaves it to the report.
        cluster: only this cluster; None: all.
        zone: IANA name of the zone whose days and months are meant.
        currency: ISO 4217; None: the currency of the prices.
        fits: a request for capacity, as ``gpus=4,cpu=32,model=H100``.
        data_dir: the warehouse's folder; None: as the settings say.
        url: address of a running warehouse, instead of a folder.
        token: for a warehouse that wants one.

    Raises:
        UsageError: there is no such report, or a word means nothing.
        InputError: the warehouse holds no rows yet.
        WarehouseError: the warehouse cannot serve.
    """
    if name not in REPORTS:
        raise UsageError(
            f"there is no report {name!r}", hint=f"the reports are {', '.join(REPORTS)}"
        )
    asked = Asked(period=period, by=by, cluster=cluster, zone=zone, currency=currency, fits=fits)
    with open_warehouse(_settings(data_dir, url, token=token)) as warehouse:
        rows, question = prepared(warehouse, REPORTS[name], asked)
    return REPORTS[name].build(rows, question)


def _settings(data_dir: Path | str | None, url: str | None, *, token: str | None) -> Settings:
    """Return the settings of file and environment, with the place that was named instead.

    Raises:
        UsageError: a folder and an address are both named.
    """
    if data_dir is not None and url is not None:
        raise UsageError(
            "data_dir and url both say where the warehouse is", hint="give one of the two"
        )
    known = load()
    if url is not None:
        place = replace(known.warehouse, url=url, token=token or known.warehouse.token)
        return replace(known, warehouse=place)
    if data_dir is not None:
        place = replace(known.warehouse, url=None)
        return replace(known, data_dir=Path(data_dir), warehouse=place)
    return known
