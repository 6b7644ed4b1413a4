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

from steward.settings.rules import (
    ByteCount,
    ClassRule,
    Interval,
    LabelKey,
    Name,
    Port,
    RowCount,
    Seconds,
    SecretUrl,
    Target,
    Token,
    Url,
)


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
    enforcer_tokens: tuple[Token, ...] = ()
    """Tokens that may record notices, acts and their audit, and change nothing else; the server
    knows no enforcer by default. An enforcer also reads and appends verdicts: list its token as
    reader and writer too."""
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
    file_sd: tuple[Name, ...] = ()
    """Files with targets in Prometheus's ``file_sd`` format (JSON or YAML), patterns allowed; read
    again when they change."""
    http_sd: tuple[Url, ...] = ()
    """Addresses that answer with targets in Prometheus's ``http_sd`` format."""
    sd_interval_s: Seconds = 60.0
    """Seconds from one look at an ``http_sd`` address to the next, as in Prometheus."""
    interval_s: Interval = 15.0
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
class KubernetesSettings:
    """Which Kubernetes cluster is watched, and how it is reached."""

    access: Literal["off", "auto", "in-cluster", "kubeconfig"] = "off"
    """``off`` watches no cluster; ``in-cluster`` uses the pod's service account, ``kubeconfig`` a
    file; ``auto`` the first of the two that is there."""
    kubeconfig: Path | None = None
    """The file to use; unset means ``$KUBECONFIG``, then ``~/.kube/config``."""
    context: Name | None = None
    """The context of the file; unset means its current one."""
    exporters: tuple[Name, ...] = ()
    """Exporters of the cluster to scrape, by labels: ``app=nvidia-dcgm-exporter``, or in full
    ``endpointslice:app=nvidia-dcgm-exporter@gpu-operator:9400``; none by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipSettings:
    """Whose a workload is, and what it is for."""

    team_labels: tuple[LabelKey, ...] = ("team", "tenant", "project")
    """Label keys that name the team, the first that is set counts: looked for on the pod, then on
    its owners, then on the namespace, then on the queue, whose name is the last resort;
    ``metadata.namespace`` stands for the namespace's own name."""
    owner_labels: tuple[LabelKey, ...] = ("owner", "user")
    """Label keys that name the person, looked for on the pod, then on its owners."""
    class_rules: tuple[ClassRule, ...] = ()
    """Rules ``CLASS: FIELD=PATTERN …`` with CLASS training, inference, development or system and
    FIELD kind, namespace, queue, priority-class or label.KEY; the first whose conditions all hold
    counts, and the built-in ones by kind come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """How the node agent reads this machine's GPUs, and where it serves them."""

    host: Name = "127.0.0.1"
    """Address the agent listens on; the default is reached from this machine only."""
    port: Port = 9410
    """TCP port the agent listens on; 0 takes a free one."""
    interval_s: Interval = 15.0
    """Seconds from one reading of the GPUs to the next: the interval that a scrape has by
    default."""
    deadline_s: Seconds = 1.5
    """Seconds after which a GPU or the kubelet that has not answered is given up for this
    reading; must be below the interval."""
    node: Name | None = None
    """Name of this node in every series; unset means ``$NODE_NAME``, else the host's name."""
    pod_resources: Path = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    """The kubelet's PodResources socket, which says which container holds which GPU; on a machine
    without a kubelet there is none, and nobody is told to hold anything."""
    proc: Path = Path("/proc")
    """Where the machine's ``/proc`` is; in a container, where the host's is mounted."""


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
class EnforceSettings:
    """How the enforcer's rounds run, and how far it may reach."""

    kinds: tuple[Name, ...] = ()
    """Kinds of objects that may be acted on, such as ``Deployment`` or ``batch/v1/Job``; none by
    default, and then every step that would change an object is only told."""
    interval_s: Interval = 60.0
    """Seconds from the start of one round to the start of the next."""
    identity: Name | None = None
    """Name of this replica in the lease; unset means the host's name and the process id."""
    quota_file: Path | None = None
    """Quota file to which the cluster's quotas are kept in every round, with what granted requests
    add; unset means that only ``steward quota apply`` writes quotas. The kinds that hold them, such
    as ``ClusterQueue``, must be among ``enforce.kinds``."""
    lease_namespace: Name = "steward"
    """Namespace of the lease by which replicas agree on one leader."""
    lease_name: Name = "steward-enforcer"
    """Name of that lease; one per cluster."""
    lease_s: Seconds = 15.0
    """Seconds after which a lease that is not renewed may be taken over, as in Kubernetes' own
    controllers."""
    verify_s: Seconds = 120.0
    """Seconds within which the pods of what was suspended must be gone; later it has failed, and
    its GPUs do not count as freed."""
    undo_after_s: Seconds | None = None
    """Seconds after which what was suspended is restored by itself; unset means never."""
    low_priority_class: Name | None = None
    """Kueue's WorkloadPriorityClass that idle work is given before it is suspended; unset means
    that Kueue's work is not lowered."""
    notify_urls: tuple[SecretUrl, ...] = ()
    """Further ways to reach owners, as Apprise writes them: ``mailto://…``, ``slack://…``; by
    default the Kubernetes Event beside the workload is the only one."""
    metrics_host: Name = "127.0.0.1"
    """Address the enforcer's metrics are served on; the default is reached from this machine
    only."""
    metrics_port: Port = 9411
    """TCP port of the metrics; 0 takes a free one."""


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
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    """Which Kubernetes cluster is watched, and how it is reached."""
    ownership: OwnershipSettings = field(default_factory=OwnershipSettings)
    """Whose a workload is, and what it is for."""
    agent: AgentSettings = field(default_factory=AgentSettings)
    """How the node agent reads this machine's GPUs, and where it serves them."""
    enforce: EnforceSettings = field(default_factory=EnforceSettings)
    """How the enforcer's rounds run, and how far it may reach."""
    dashboard: DashboardSettings = field(default_factory=DashboardSettings)
    """Where the screens are served, and in which language."""
