"""Permissions: nothing to delete, no wildcard, and no more than what is enabled needs."""

from __future__ import annotations

import pytest

from enforcer.actuators.kinds import CATALOGUE
from enforcer.doctor import examined_facts, examined_kinds, examined_lease
from enforcer.facts import Health
from enforcer.gateway.memory import MemoryGateway
from enforcer.lease import LeaseTerms
from enforcer.rbac import cluster_rules, manifests, needs
from tests.support.enforcer_plan import HOUR, MINUTE, NOON, policy

READING = {"get", "list"}
ALL = sorted({each.kind for each in CATALOGUE} | {"Pod", "ScaledObject"})
VOLCANO = "batch.volcano.sh/v1alpha1/Job"


def granted(kinds: list[str]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in cluster_rules(kinds)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_without_an_enabled_kind_only_events_are_written() -> None:
    written = {each for each in granted([]) if each[2] not in READING}
    assert written == {("", "events", "create")}


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        ("Deployment", {("apps", "deployments", "patch"), ("apps", "deployments/scale", "patch")}),
        ("Job", {("batch", "jobs", "patch")}),
        ("batch/v1/Job", {("batch", "jobs", "patch")}),
        ("Pod", {("", "pods", "patch"), ("", "pods/eviction", "create")}),
        ("Workload", {("kueue.x-k8s.io", "workloads", "patch")}),
        ("ScaledObject", {("keda.sh", "scaledobjects", "patch")}),
        (VOLCANO, {("bus.volcano.sh", "commands", "create")}),
        ("Unheard", set()),
    ],
)
def test_an_enabled_kind_adds_what_it_needs_and_no_more(
    kind: str, added: set[tuple[str, str, str]]
) -> None:
    assert granted([kind]) - granted([]) == added


def test_nothing_is_ever_deleted_and_nothing_is_a_wildcard() -> None:
    words = {word for each in granted([*ALL, VOLCANO]) for word in each}
    assert not words & {"*", "delete", "deletecollection", "update", "escalate", "bind"}


def test_the_lease_is_the_only_one_that_may_be_patched() -> None:
    roles = [one for one in manifests([], namespace="ops", lease_name="l") if one["kind"] == "Role"]
    (role,) = roles
    rules = role["rules"]
    assert isinstance(rules, list)
    assert [rule.get("resourceNames") for rule in rules] == [None, ["l"]]


def test_the_doctor_says_kind_by_kind_what_can_be_seen_and_done() -> None:
    gateway = MemoryGateway(denied={("patch", "Job")})
    findings = examined_kinds(gateway, ["Job", "Deployment"])
    bad = [(one.subject, one.words) for one in findings if not one.is_good]
    assert bad == [
        ("batch/v1 Job", "cannot act (patch missing, or not served): reclaimed and restored")
    ]
    assert len(findings) == len(needs(["Job", "Deployment"]))


@pytest.mark.parametrize(
    ("age", "is_good"),
    [
        pytest.param(5 * MINUTE - MINUTE / 60, True, id="just fresh"),
        pytest.param(5 * MINUTE, True, id="exactly"),
        pytest.param(5 * MINUTE + MINUTE / 60, False, id="just stale"),
        pytest.param(None, False, id="nothing stored"),
    ],
)
def test_the_doctor_tells_how_old_the_newest_reading_is(age: object, is_good: bool) -> None:
    at = None if age is None else NOON - age  # type: ignore[operator]  # a length of time
    health = Health(telemetry_at=at, api_error_ratio=0.0, is_stopped=False)
    found = examined_facts(health, (policy(),), now=NOON)
    assert found[0].is_good is is_good
    assert [one.subject for one in found] == ["telemetry", "switch", "policy p@1"]


def test_the_doctor_tells_who_leads() -> None:
    terms = LeaseTerms(namespace="steward", name="lease", identity="a", length=HOUR)
    assert "held by nobody" in examined_lease(MemoryGateway(), terms).words
