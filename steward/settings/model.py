"""The settings themselves: names, types, rules, defaults, and under each field its meaning.

A field's annotation carries its rule and the text below it is printed in the JSON Schema and in
``docs/settings.md``: there is no second list.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from steward.settings.rules import ByteCount, Name, Port, RowCount, Seconds, Target, Token, Url


def default_data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return ``$XDG_DATA_HOME/steward``, or ``~/.local/share/steward`` where that is not set."""
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "steward"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What is logged to standard error, and how."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe message that is logged; ``debug`` adds tracebacks and every request."""
    format: Literal["console", "json"] = "console"
    """``console`` for people, ``json`` for log stores: one object per line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarehouseSettings:
    """Where the warehouse is, and what its server allows."""

    url: Url | None = None
    """Address of a running warehouse server; unset means the one that owns the data folder, or
    the file itself where no server runs."""
    host: Name = "127.0.0.1"
    """Address the server listens on; the default is reached from this machine only, and any other
    address needs tokens."""
    port: Port = 8420
    """TCP port the server listens on; 0 takes a free one."""
    token: Token | None = None
    """The token this process shows to the server; unset shows none."""
    writer_tokens: tuple[Token, ...] = ()
    """Tokens that may append rows; the server knows no writer by default."""
    reader_tokens: tuple[Token, ...] = ()
    """Tokens that may ask questions; the server knows no reader by default."""
    admin_tokens: tuple[Token, ...] = ()
    """Tokens that may do everything; the server knows no administrator by default."""
    query_timeout_s: Seconds = 30.0
    """Seconds after which a statement is stopped: longer than any report needs on a year of rows,
    shorter than a reader waits."""
    query_row_limit: RowCount = 1_000_000
    """Rows one answer may have: beyond it a person wants an aggregate or a file."""
    query_memory_bytes: ByteCount = 1_073_741_824
    """Bytes of memory that all statements together may use before they spill to disk or fail."""
    body_limit_bytes: ByteCount = 268_435_456
    """Bytes one request may carry: far above a collector's batch, so that only mistakes meet it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSettings:
    """What is scraped, and how patiently."""

    targets: tuple[Target, ...] = ()
    """Exporters to scrape, as ``host:port`` or with scheme and path; none by default, and
    ``--scrape`` adds to them."""
    interval_s: Seconds = 15.0
    """Seconds from one scrape of a target to the next: the interval dcgm-exporter is used with."""
    timeout_s: Seconds = 10.0
    """Seconds after which a target that has not answered in full is given up for this round."""
    body_limit_bytes: ByteCount = 67_108_864
    """Bytes read from one target before it is given up as endless; a node with eight GPUs answers
    with less than one MiB."""
    spool_limit_bytes: ByteCount = 4_294_967_296
    """Bytes on disk that may wait while the warehouse is away: more than a day of a thousand nodes;
    beyond it the oldest samples are given up and counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """Where the screens are served, and in which language."""

    host: Name = "127.0.0.1"
    """Address the dashboard listens on; the default is reached from this machine only."""
    port: Port = 8501
    """TCP port the dashboard listens on; 0 takes a free one."""
    language: Literal["en", "zh"] = "en"
    """Language of screens and reports: English or Chinese, whatever the browser asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything an operator may choose."""

    data_dir: Path = field(default_factory=default_data_dir)
    """Folder of the warehouse, the spool and all other state; ``$XDG_DATA_HOME/steward`` or
    ``~/.local/share/steward`` by default, so that no privileges are needed."""
    cluster: Name = "default"
    """Name of the cluster that collected rows belong to, where the source names none."""
    log: LogSettings = field(default_factory=LogSettings)
    """What is logged to standard error, and how."""
    warehouse: WarehouseSettings = field(default_factory=WarehouseSettings)
    """Where the warehouse is, and what its server allows."""
    collect: CollectSettings = field(default_factory=CollectSettings)
    """What is scraped, and how patiently."""
    dashboard: DashboardSettings = field(default_factory=DashboardSettings)
    """Where the screens are served, and in which language."""
