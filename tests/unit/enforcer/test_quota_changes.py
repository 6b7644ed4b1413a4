"""A quota file against live queues: what differs, what is written, and what puts it back."""

from __future__ import annotations

import pytest

from enforcer.actuators.fields import unpatch_of
from enforcer.gateway.port import JsonValue, KubernetesObject, Verb
from enforcer.quota import kueue, queues, resource_quota
from enforcer.quota.change import QuotaChange
from enforcer.quota.model import Scheduler
from tests.support.enforcer_quota import GPU, cluster_queue, model, quota_file, share, team


def numbers(change: QuotaChange) -> dict[str, tuple[str | None, str | None]]:
    return {one.field: (one.live, one.wanted) for one in change.differences}


def merged(found: KubernetesObject, patch: KubernetesObject) -> dict[str, JsonValue]:
    """Return what a JSON merge patch (RFC 7396) makes of the object."""
    result = dict(found)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            below = result.get(name)
            result[name] = merged(below if isinstance(below, dict) else {}, value)
        else:
            result[name] = value
    return result


def unmade(change: QuotaChange, found: KubernetesObject) -> dict[str, JsonValue]:
    """Return the object once the change is undone."""
    return merged(found, unpatch_of(change.changes, found))


def test_a_queue_that_says_so_already_is_left_alone() -> None:
    queue = cluster_queue(nominalQuota="8", borrowingLimit="4")
    assert kueue.changes(quota_file(), [queue]) == ((), ())


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param("7", {"nominalQuota": ("7", "8")}, id="one less"),
        pytest.param("8", {}, id="the same"),
        pytest.param("9", {"nominalQuota": ("9", "8")}, id="one more"),
    ],
)
def test_only_what_differs_is_told(live: str, expected: object) -> None:
    queue = cluster_queue(nominalQuota=live, borrowingLimit="4")
    found, troubles = kueue.changes(quota_file(), [queue])
    assert troubles == ()
    assert [numbers(one) for one in found] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("borrow", "expected"),
    [
        pytest.param(None, (None, None), id="no limit is no field"),
        pytest.param(0, (None, "0"), id="zero is a limit"),
        pytest.param(5, (None, "5"), id="a number"),
    ],
)
def test_no_limit_on_borrowing_is_not_a_limit_of_zero(borrow: int | None, expected: object) -> None:
    queue = cluster_queue(nominalQuota="1")
    (change,), _ = kueue.changes(quota_file(team("vision", share(8, borrow=borrow))), [queue])
    assert numbers(change).get("borrowingLimit", (None, None)) == expected


def test_everything_else_of_a_cluster_queue_is_written_back_as_it_was() -> None:
    queue = cluster_queue(nominalQuota="1", lendingLimit="1")
    (change,), _ = kueue.changes(quota_file(), [queue])
    assert (change.write.verb, change.write.resource_version) == (Verb.PATCH, "7")
    assert change.write.target.uid == "uid-vision"
    assert merged(queue, change.write.body) == cluster_queue(nominalQuota="8", borrowingLimit="4")
    assert unmade(change, merged(queue, change.write.body)) == queue


def test_a_queue_without_cohort_gets_no_limits_that_kueue_would_refuse() -> None:
    queue = cluster_queue(nominalQuota="1", cohort=None)
    (change,), troubles = kueue.changes(quota_file(), [queue])
    assert numbers(change) == {"nominalQuota": ("1", "8")}
    assert [one.message for one in troubles] == [
        "ClusterQueue vision is in no cohort, so it can neither borrow nor lend"
    ]


def test_what_the_cluster_lacks_is_told_and_the_rest_is_written() -> None:
    file = quota_file(team("audio"), team("vision", share(2), share(3, of="A100")),
                      models=(model(), model("A100", flavor="a100")))  # fmt: skip
    found, troubles = kueue.changes(file, [cluster_queue(nominalQuota="1", borrowingLimit="4")])
    assert [numbers(one) for one in found] == [{"nominalQuota": ("1", "2")}]
    assert [one.message for one in troubles] == [
        "there is no ClusterQueue 'audio' for team 'audio'",
        f"ClusterQueue vision has no {GPU} of flavor 'a100'",
    ]


def kai_queue(**gpu: JsonValue) -> KubernetesObject:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "vision", "uid": "u", "resourceVersion": "3"},
        "spec": {"parentQueue": "all", "resources": {"gpu": gpu, "cpu": {"quota": -1}}},
    }


@pytest.mark.parametrize(
    ("borrow", "limit"),
    [
        pytest.param(None, -1, id="no limit is minus one"),
        pytest.param(0, 8, id="nothing to borrow: the guarantee"),
        pytest.param(4, 12, id="guarantee and loan"),
    ],
)
def test_kai_counts_all_models_together(borrow: int | None, limit: int) -> None:
    file = quota_file(team("vision", share(8, borrow=borrow)), scheduler=Scheduler.KAI)
    queue = kai_queue(quota=2, limit=2, overQuotaWeight=1)
    (change,), _ = queues.changes(file, [queue])
    assert merged(queue, change.write.body) == kai_queue(quota=8, limit=limit, overQuotaWeight=1)
    assert unmade(change, merged(queue, change.write.body)) == queue


def volcano_queue(spec: dict[str, JsonValue]) -> KubernetesObject:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "vision", "uid": "u", "resourceVersion": "3"},
        "spec": {"weight": 1, **spec},
    }


@pytest.mark.parametrize(
    ("lend", "kept"),
    [
        pytest.param(None, None, id="all is lent"),
        pytest.param(8, None, id="the whole guarantee is lent"),
        pytest.param(5, "3", id="three are kept"),
        pytest.param(0, "8", id="nothing is lent"),
    ],
)
def test_volcano_keeps_what_is_not_lent(lend: int | None, kept: str | None) -> None:
    file = quota_file(team("vision", share(8, borrow=4, lend=lend)), scheduler=Scheduler.VOLCANO)
    (change,), _ = queues.changes(file, [volcano_queue({})])
    wanted = {"deserved": {GPU: "8"}, "capability": {GPU: "12"}}
    if kept is not None:
        wanted["guarantee"] = {"resource": {GPU: kept}}
    assert merged(volcano_queue({}), change.write.body) == volcano_queue(wanted)
    assert queues.changes(file, [volcano_queue(wanted)]) == ((), ())


def resource_quota_of(namespace: str, hard: dict[str, JsonValue]) -> KubernetesObject:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": resource_quota.NAME,
            "namespace": namespace,
            "uid": "u",
            "resourceVersion": "5",
        },
        "spec": {"hard": hard},
    }


def test_a_resource_quota_is_made_where_there_is_none_and_patched_where_there_is() -> None:
    file = quota_file(scheduler=Scheduler.RESOURCE_QUOTA)
    (made,), _ = resource_quota.changes(file, [])
    assert (made.write.verb, made.write.body["spec"]) == (
        Verb.CREATE,
        {"hard": {f"requests.{GPU}": "12"}},
    )
    live = resource_quota_of("vision", {f"requests.{GPU}": "3", "pods": "9"})
    (change,), _ = resource_quota.changes(file, [live])
    wanted = resource_quota_of("vision", {f"requests.{GPU}": "12", "pods": "9"})
    assert merged(live, change.write.body) == wanted
    assert unmade(change, wanted) == live
    assert resource_quota.changes(file, [wanted]) == ((), ())


def test_undoing_a_new_resource_quota_leaves_one_that_limits_nothing() -> None:
    (made,), _ = resource_quota.changes(quota_file(scheduler=Scheduler.RESOURCE_QUOTA), [])
    after = unmade(made, made.write.body)
    assert after["spec"] == {"hard": {}}


@pytest.mark.parametrize("namespaces", [(), ("a", "b")], ids=["none", "two"])
def test_a_resource_quota_needs_one_namespace(namespaces: tuple[str, ...]) -> None:
    file = quota_file(team(namespaces=namespaces), scheduler=Scheduler.RESOURCE_QUOTA)
    found, (trouble,) = resource_quota.changes(file, [])
    assert found == ()
    assert trouble.message == (
        f"team 'vision' has {len(namespaces)} namespaces, but a ResourceQuota limits one"
    )


def test_a_quota_of_somebody_else_in_the_namespace_is_not_touched() -> None:
    other = {**resource_quota_of("vision", {f"requests.{GPU}": "1"})}
    other["metadata"] = {"name": "theirs", "namespace": "vision", "uid": "x"}
    (change,), _ = resource_quota.changes(quota_file(scheduler=Scheduler.RESOURCE_QUOTA), [other])
    assert change.write.verb is Verb.CREATE
