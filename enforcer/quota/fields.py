"""Every key of a quota file: its shape, its meaning, its default, and what a section makes."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from enforcer.policies.shapes import Field, ListOf, Nested, Section
from enforcer.policies.values import Choice, Count, Length, TextOf, Words
from enforcer.quota.model import (
    ANY,
    Ceiling,
    HoldingCap,
    ModelName,
    QuotaFile,
    Scheduler,
    Share,
    TeamQuota,
)

MOST_GPUS: Final = 10_000_000
YEAR: Final = timedelta(days=365)
_TEXT: Final = TextOf(pattern=".+", words="a text of at least one character")
_GPUS: Final = Count(least=0, most=MOST_GPUS)

GPU_MODEL: Final = Field(name="gpu_model", shape=_TEXT, about="The model, as inventory names it.")
RESOURCE: Final = Field(
    name="resource", shape=_TEXT, about="What pods ask for.", default="nvidia.com/gpu"
)
FLAVOR: Final = Field(
    name="flavor", shape=_TEXT, about="Kueue's ResourceFlavor of it.", default="default"
)
NODE_VALUES: Final = Field(
    name="node_label_values",
    shape=Words(),
    about="Values of the product label on its nodes, for the guard.",
    default=(),
)
CAPACITY: Final = Field(
    name="capacity",
    shape=_GPUS,
    about="GPUs of it; guarantees may not exceed it.",
    is_optional=True,
)


def _model(section: Section) -> ModelName:
    return ModelName(
        gpu_model=section.get(GPU_MODEL),
        resource=section.get(RESOURCE),
        flavor=section.get(FLAVOR),
        node_label_values=tuple(sorted(section.get(NODE_VALUES))),
        capacity_gpu_count=section.maybe(CAPACITY),
    )


GUARANTEED: Final = Field(name="guaranteed", shape=_GPUS, about="GPUs it has whenever it asks.")
BORROW: Final = Field(
    name="borrow",
    shape=_GPUS,
    about="Most beyond the guarantee; left out: as much as is free.",
    is_optional=True,
)
LEND: Final = Field(
    name="lend",
    shape=_GPUS,
    about="Most of an unused guarantee that others may use; left out: all of it.",
    is_optional=True,
)


def _share(section: Section) -> Share:
    return Share(
        gpu_model=section.get(GPU_MODEL),
        guaranteed_gpu_count=section.get(GUARANTEED),
        borrow_gpu_count=section.maybe(BORROW),
        lend_gpu_count=section.maybe(LEND),
    )


TEAM: Final = Field(name="team", shape=_TEXT, about="The team.")
QUEUE: Final = Field(
    name="queue",
    shape=_TEXT,
    about="Its ClusterQueue or Queue; left out: named as the team.",
    is_optional=True,
)
NAMESPACES: Final = Field(
    name="namespaces", shape=Words(), about="Where it works; a ResourceQuota needs one.", default=()
)
SHARES: Final = Field(
    name="gpus",
    shape=ListOf(item=Nested(fields=(GPU_MODEL, GUARANTEED, BORROW, LEND), make=_share), least=1),
    about="What it has of each model.",
)


def _team(section: Section) -> TeamQuota:
    name = section.get(TEAM)
    shares: tuple[Share, ...] = section.get(SHARES)
    return TeamQuota(
        tenant_id=name,
        queue=section.maybe(QUEUE) or name,
        namespaces=tuple(sorted(section.get(NAMESPACES))),
        shares=tuple(sorted(shares, key=lambda one: one.gpu_model)),
    )


ANY_TEAM: Final = Field(name="team", shape=_TEXT, about="The team; left out: any.", default=ANY)
CLASS: Final = Field(
    name="class", shape=_TEXT, about="training, inference or development; left out: any.",
    default=ANY,
)  # fmt: skip
HIGHEST: Final = Field(name="highest", shape=_TEXT, about="The highest priority class allowed.")


def _ceiling(section: Section) -> Ceiling:
    return Ceiling(
        tenant_id=section.get(ANY_TEAM),
        workload_class=section.get(CLASS),
        highest=section.get(HIGHEST),
    )


OWNER_WORKLOADS: Final = Field(
    name="per_owner_workloads",
    shape=_GPUS,
    about="Workloads that one person may hold in one queue.",
    is_optional=True,
)
OWNER_GPUS: Final = Field(
    name="per_owner_gpus",
    shape=_GPUS,
    about="GPUs that one person may hold in one queue.",
    is_optional=True,
)
LONGEST: Final = Field(
    name="longest",
    shape=Length(least=timedelta(minutes=1), most=YEAR),
    about="Held longer than this is told.",
    is_optional=True,
)


def _cap(section: Section) -> HoldingCap:
    return HoldingCap(
        workload_class=section.get(CLASS),
        per_owner_workload_count=section.maybe(OWNER_WORKLOADS),
        per_owner_gpu_count=section.maybe(OWNER_GPUS),
        longest=section.maybe(LONGEST),
    )


CLUSTER: Final = Field(name="cluster", shape=_TEXT, about="The cluster whose quotas these are.")
SCHEDULER: Final = Field(
    name="scheduler", shape=Choice(of=Scheduler), about="What keeps the quotas of the cluster."
)
MODELS: Final = Field(
    name="models",
    shape=ListOf(
        item=Nested(fields=(GPU_MODEL, RESOURCE, FLAVOR, NODE_VALUES, CAPACITY), make=_model),
        least=1,
    ),
    about="GPU models and what the cluster calls them.",
)
TEAMS: Final = Field(
    name="teams",
    shape=ListOf(item=Nested(fields=(TEAM, QUEUE, NAMESPACES, SHARES), make=_team), least=1),
    about="Who has what.",
)
PRIORITIES: Final = Field(
    name="priorities", shape=Words(), about="Priority classes, lowest first.", default=()
)
_NO_CEILINGS: tuple[Ceiling, ...] = ()
CEILINGS: Final = Field(
    name="ceilings",
    shape=ListOf(item=Nested(fields=(ANY_TEAM, CLASS, HIGHEST), make=_ceiling)),
    about="Highest priority class by team and class; the most particular one counts.",
    default=_NO_CEILINGS,
)
_NO_CAPS: tuple[HoldingCap, ...] = ()
CAPS: Final = Field(
    name="caps",
    shape=ListOf(item=Nested(fields=(CLASS, OWNER_WORKLOADS, OWNER_GPUS, LONGEST), make=_cap)),
    about="How much and how long one person may hold.",
    default=_NO_CAPS,
)
PRODUCT_LABEL: Final = Field(
    name="product_label",
    shape=_TEXT,
    about="Node label that names the GPU product.",
    default="nvidia.com/gpu.product",
)
TEAM_LABELS: Final = Field(
    name="team_labels",
    shape=Words(),
    about="The guard asks for one of these labels to name the team; left out: it does not ask.",
    default=(),
)
CLASS_LABELS: Final = Field(
    name="class_labels",
    shape=Words(),
    about="The guard asks for one of these labels to name the class; left out: it does not ask.",
    default=(),
)


def _file(section: Section) -> QuotaFile:
    models: tuple[ModelName, ...] = section.get(MODELS)
    teams: tuple[TeamQuota, ...] = section.get(TEAMS)
    return QuotaFile(
        cluster=section.get(CLUSTER),
        scheduler=section.get(SCHEDULER),
        models=tuple(sorted(models, key=lambda one: one.gpu_model)),
        teams=tuple(sorted(teams, key=lambda one: one.tenant_id)),
        priorities=section.get(PRIORITIES),
        ceilings=section.get(CEILINGS),
        caps=section.get(CAPS),
        product_label=section.get(PRODUCT_LABEL),
        team_labels=section.get(TEAM_LABELS),
        class_labels=section.get(CLASS_LABELS),
    )


QUOTA: Final = Nested(
    fields=(
        *(CLUSTER, SCHEDULER, MODELS, TEAMS, PRIORITIES, CEILINGS, CAPS),
        *(PRODUCT_LABEL, TEAM_LABELS, CLASS_LABELS),
    ),
    make=_file,
)
