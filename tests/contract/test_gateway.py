"""One gateway is as good as another: memory, dry run and a real API server answer alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from enforcer.gateway.dry_run import DryRunGateway
from enforcer.gateway.live import LiveGateway
from enforcer.gateway.live_access import LiveAccess, Origin
from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.port import Gateway, KubernetesObject, Target, Verb, Write
from steward.errors import ConflictError, FencedError, RefusedError
from tests.conftest import skip_aloud
from tests.support.cluster import Cluster, running_cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_namespace import Namespace, emptied_namespace
from tests.support.cluster_objects import deployment, pod
from tests.support.cluster_programs import CLUSTER, ProgramMissingError, program, require_openssl

NUMBERS = itertools.count(1)


@dataclass(slots=True)
class World:
    """A gateway, and somebody else who makes objects behind its back."""

    gateway: Gateway
    put: Callable[[Manifest], KubernetesObject]
    leads: list[bool]
    space: str = "contract"

    def made(self, manifest: Manifest) -> KubernetesObject:
        """Return an object that somebody else made, as the gateway reads it."""
        found = self.gateway.read(target_of(self.put(manifest)))
        assert found is not None
        return found


def target_of(thing: KubernetesObject, **changes: str | None) -> Target:
    """Return how to address an object."""
    metadata = thing["metadata"]
    assert isinstance(metadata, dict)
    api_version, kind = str(thing["apiVersion"]), str(thing["kind"])
    name, uid = str(metadata["name"]), str(metadata["uid"])
    whole = Target(
        api_version=api_version, kind=kind, namespace=str(metadata["namespace"]), name=name, uid=uid
    )
    return replace(whole, **changes)  # type: ignore[arg-type]  # the fields are texts or None


def patch(thing: KubernetesObject, body: KubernetesObject, *, verb: Verb = Verb.PATCH) -> Write:
    """Return a write that holds to the object as read."""
    metadata = thing["metadata"]
    assert isinstance(metadata, dict)
    version = str(metadata["resourceVersion"])
    return Write(verb=verb, target=target_of(thing), body=body, resource_version=version)


def spec_of(thing: KubernetesObject | None) -> Manifest:
    """Return an object's spec."""
    assert thing is not None
    spec = thing["spec"]
    assert isinstance(spec, dict)
    return spec


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        for name in CLUSTER:
            program(name)
        require_openssl()
    except ProgramMissingError as error:
        skip_aloud(str(error))
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def own(cluster: Cluster) -> Iterator[Namespace]:
    with emptied_namespace(cluster, f"contract-{next(NUMBERS)}") as space:
        yield space


@pytest.fixture(params=["memory", "dry_run", pytest.param("live", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    leads = [True]
    memory = MemoryGateway(is_leading=lambda: leads[0])
    if request.param == "memory":
        yield World(memory, memory.put, leads)
        return
    if request.param == "dry_run":
        yield World(DryRunGateway(memory), memory.put, leads)
        return
    own: Namespace = request.getfixturevalue("own")
    access = LiveAccess(Origin(kubeconfig=own.cluster.kubeconfig))
    live = LiveGateway(access, is_leading=lambda: leads[0])
    yield World(live, lambda manifest: stored(own, manifest), leads, own.name)
    access.close()


def stored(own: Namespace, manifest: Manifest) -> Manifest:
    """Create an object; of a pod and a budget return once the cluster has taken note."""
    status = manifest.pop("status", None)
    made = own.apply(manifest)
    kind = f"{made['apiVersion']}/{made['kind']}"
    name = made["metadata"]["name"]
    if made["kind"] == "Pod":
        own.cluster.create_node(f"{own.name}-node")
        own.wait_for_pods(1, phase="Running", where=lambda each: each["metadata"]["name"] == name)
    if made.get("spec", {}).get("paused"):
        own.wait_until(lambda: is_noted(own.get(kind, name)), what="the Deployment to be still")
    if status is not None:
        own.wait_until(
            lambda: (
                status.items() <= own.get(kind, name).get("status", {}).items()
                and own.get(kind, name)["status"].get("currentHealthy") == 1
            ),
            what="the budget to count",
        )
    return own.get(kind, name)


def still(world: World, *, replica_count: int = 0) -> Manifest:
    """Return a Deployment that is paused: its controller notes that, and then lets it be."""
    manifest = deployment("one", namespace=world.space, replica_count=replica_count)
    manifest["spec"]["paused"] = True
    return manifest


def is_noted(found: Manifest) -> bool:
    """Return whether the controller of a paused Deployment has noted it."""
    status = found.get("status", {})
    reasons = {each["reason"] for each in status.get("conditions", [])}
    is_seen: bool = status.get("observedGeneration") == found["metadata"]["generation"]
    return is_seen and "DeploymentPaused" in reasons


def budget(world: World, *, min_available: int) -> Manifest:
    """Return a budget over pods with app=one, of which there is one."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": world.space},
        "spec": {
            "minAvailable": min_available,
            "selector": {"matchLabels": {"app": "one"}},
        },
        "status": {"disruptionsAllowed": 1 - min_available},
    }


def one_pod(world: World) -> Manifest:
    """Return a bare pod."""
    return pod("one", namespace=world.space) | {
        "metadata": {"name": "one", "namespace": world.space, "labels": {"app": "one"}},
    }


def test_what_is_not_there_is_none(world: World) -> None:
    missing = Target(
        api_version="apps/v1", kind="Deployment", namespace=world.space, name="none", uid=None
    )
    assert world.gateway.read(missing) is None
    assert world.gateway.read(replace(missing, api_version="none.example/v1", kind="No")) is None


def test_another_object_of_the_same_name_is_not_read(world: World) -> None:
    thing = world.made(still(world))
    assert world.gateway.read(target_of(thing, uid=None)) == thing
    assert world.gateway.read(target_of(thing, uid="another")) is None


def test_a_list_is_ascending_and_narrowed_by_labels(world: World) -> None:
    for name, labels in (("b", {"of": "x"}), ("a", {"of": "x", "is": "y"}), ("c", {})):
        manifest = deployment(name, namespace=world.space, replica_count=0)
        manifest["metadata"]["labels"] = labels
        world.put(manifest)

    def names(labels: str) -> list[str]:
        found = world.gateway.list(
            api_version="apps/v1", kind="Deployment", namespace=world.space, labels=labels
        )
        assert {(each["apiVersion"], each["kind"]) for each in found} <= {("apps/v1", "Deployment")}
        return [target_of(each).name for each in found]

    assert names("") == ["a", "b", "c"]
    assert names("of=x") == ["a", "b"]
    assert names("of=x,is") == ["a"]
    assert names("of=x,!is") == ["b"]
    assert names("of=z") == []


def test_a_kind_that_is_not_served_has_no_objects(world: World) -> None:
    found = world.gateway.list(
        api_version="keda.sh/v1alpha1", kind="ScaledObject", namespace=world.space
    )
    assert list(found) == []


def test_a_patch_changes_what_it_names_and_moves_the_version(world: World) -> None:
    thing = world.made(still(world))
    write = patch(thing, {"metadata": {"annotations": {"a": "b"}}, "spec": {"minReadySeconds": 5}})
    world.gateway.rehearse(write)
    assert world.gateway.read(write.target) == thing, "a rehearsal stores nothing"
    answer = world.gateway.write(write)
    assert spec_of(answer) == {**spec_of(thing), "minReadySeconds": 5}
    found = world.gateway.read(write.target)
    assert spec_of(found) == spec_of(answer)
    assert found is not None
    assert patch(found, {}).resource_version != write.resource_version


def test_a_null_takes_a_field_away(world: World) -> None:
    thing = world.made(still(world))
    world.gateway.write(patch(thing, {"spec": {"paused": None}}))
    assert "paused" not in spec_of(world.gateway.read(target_of(thing)))


def test_scaling_sets_the_replicas_alone(world: World) -> None:
    thing = world.made(still(world, replica_count=2))
    fresh = world.gateway.read(target_of(thing))
    assert fresh is not None
    write = patch(fresh, {"spec": {"replicas": 0}}, verb=Verb.SCALE)
    write = replace(write, resource_version=None)
    world.gateway.rehearse(write)
    answer = world.gateway.write(write)
    assert spec_of(answer) == {**spec_of(thing), "replicas": 0}
    assert answer["kind"] == "Deployment", "the object itself, not its scale"


@pytest.mark.parametrize("verb", [Verb.PATCH, Verb.SCALE])
@pytest.mark.parametrize("is_real", [False, True], ids=["rehearsed", "written"])
def test_a_changed_or_replaced_object_is_not_written(
    world: World, verb: Verb, is_real: bool
) -> None:
    thing = world.made(still(world))
    send = world.gateway.write if is_real else world.gateway.rehearse
    body: KubernetesObject = {"spec": {"replicas": 1}}
    write = patch(thing, body, verb=verb)
    for wrong in (
        replace(write, resource_version="4000000000"),
        replace(write, target=target_of(thing, uid="another")),
        replace(write, target=target_of(thing, name="none")),
        replace(write, target=target_of(thing, uid="another"), resource_version=None),
    ):
        with pytest.raises(ConflictError):
            send(wrong)
    assert spec_of(world.gateway.read(target_of(thing))) == spec_of(thing)


def test_an_eviction_takes_the_pod(world: World) -> None:
    thing = world.made(one_pod(world))
    world.put(budget(world, min_available=0))
    write = replace(patch(thing, {}, verb=Verb.EVICT), resource_version=None)
    world.gateway.rehearse(write)
    assert world.gateway.read(write.target) is not None
    world.gateway.write(write)
    for _ in range(100):
        if world.gateway.read(write.target) is None:
            break
        world.gateway.list(api_version="v1", kind="Pod", namespace=world.space)
    else:
        found = world.gateway.read(write.target)
        assert found is None or "deletionTimestamp" in str(found["metadata"])


def test_a_disruption_budget_refuses_an_eviction(world: World) -> None:
    thing = world.made(one_pod(world))
    world.put(budget(world, min_available=1))
    write = replace(patch(thing, {}, verb=Verb.EVICT), resource_version=None)
    with pytest.raises(RefusedError, match="budget"):
        world.gateway.rehearse(write)
    with pytest.raises(RefusedError, match="budget"):
        world.gateway.write(write)
    assert world.gateway.read(write.target) is not None


def test_an_eviction_of_another_pod_of_the_name_is_a_conflict(world: World) -> None:
    thing = world.made(one_pod(world))
    write = replace(
        patch(thing, {}, verb=Verb.EVICT),
        target=target_of(thing, uid="another"),
        resource_version=None,
    )
    with pytest.raises(ConflictError):
        world.gateway.write(write)


def test_a_second_creation_of_the_same_name_is_a_conflict(world: World) -> None:
    body: KubernetesObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "new", "namespace": world.space},
        "data": {"a": "b"},
    }
    target = Target(api_version="v1", kind="ConfigMap", namespace=world.space, name="new", uid=None)
    write = Write(verb=Verb.CREATE, target=target, body=body, resource_version=None)
    world.gateway.rehearse(write)
    assert world.gateway.read(target) is None
    answer = world.gateway.write(write)
    assert target_of(answer).uid
    assert answer["data"] == {"a": "b"}
    with pytest.raises(ConflictError):
        world.gateway.write(write)


@pytest.mark.parametrize(
    "world", ["memory", pytest.param("live", marks=pytest.mark.slow)], indirect=True
)
def test_who_no_longer_leads_writes_nothing(world: World) -> None:
    thing = world.made(still(world))
    write = patch(thing, {"spec": {"minReadySeconds": 5}})
    world.leads[0] = False
    with pytest.raises(FencedError):
        world.gateway.write(write)
    world.gateway.rehearse(write)
    assert world.gateway.read(write.target) == thing
    world.leads[0] = True
    world.gateway.write(write)


def test_an_administrator_may_everything_that_is_served(world: World) -> None:
    for verb in ("get", "list", "patch", "patch/scale"):
        assert world.gateway.may(
            verb=verb, api_version="apps/v1", kind="Deployment", namespace=None
        )
    assert world.gateway.may(
        verb="create/eviction", api_version="v1", kind="Pod", namespace=world.space
    )
