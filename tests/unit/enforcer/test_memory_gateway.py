"""What the cluster in memory plays beside what every gateway does: crashes, controllers, rights."""

from __future__ import annotations

import pytest

from enforcer.actuators.fields import target_of
from enforcer.gateway.dry_run import DryRunGateway
from enforcer.gateway.memory import Call, MemoryGateway
from enforcer.gateway.merging import is_selected, merged
from enforcer.gateway.port import JsonValue, Verb, Write
from steward.errors import ClusterError, ConflictError, DeniedError, RefusedError
from tests.support.enforcer_objects import Json, deployment, pod, thing

SUSPEND = Write(
    verb=Verb.PATCH,
    target=target_of(thing("Job")),
    body={"spec": {"suspend": True}},
    resource_version=None,
)


def is_suspended(gateway: MemoryGateway) -> bool:
    """Return whether the Job is suspended."""
    found = gateway.read(SUSPEND.target)
    assert found is not None
    return found["spec"] == {"suspend": True}


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_broken_connection_leaves_open_whether_it_was_written(*, is_done: bool) -> None:
    def break_it(call: Call) -> None:
        if call.name == "write" and call.is_done is is_done:
            raise ClusterError("no answer", hint="wait")

    gateway = MemoryGateway([thing("Job")], on_call=break_it)
    with pytest.raises(ClusterError):
        gateway.write(SUSPEND)
    assert is_suspended(gateway) is is_done


def test_controllers_see_what_was_written_and_act() -> None:
    def controller(gateway: MemoryGateway) -> None:
        if is_suspended(gateway):
            gateway.remove(target_of(pod()))

    gateway = MemoryGateway([thing("Job"), pod()])
    gateway.controllers.append(controller)
    gateway.write(SUSPEND)
    assert gateway.read(target_of(pod())) is None


def test_what_is_denied_is_refused_and_told() -> None:
    gateway = MemoryGateway([thing("Job"), deployment()], denied=[("patch", "Job")])
    with pytest.raises(DeniedError, match="may not patch Job"):
        gateway.write(SUSPEND)
    with pytest.raises(DeniedError):
        gateway.rehearse(SUSPEND)
    asked = {"api_version": "batch/v1", "namespace": None}
    assert not gateway.may(verb="patch", kind="Job", **asked)  # type: ignore[arg-type]  # texts
    assert gateway.may(verb="get", kind="Job", **asked)  # type: ignore[arg-type]  # texts


def test_admission_refuses_in_its_own_words() -> None:
    gateway = MemoryGateway([thing("Job")])
    gateway.refusals.append(lambda write: "not at night" if write.verb is Verb.PATCH else None)
    with pytest.raises(RefusedError, match="not at night"):
        gateway.rehearse(SUSPEND)


def test_a_kind_without_scale_is_not_scaled() -> None:
    gateway = MemoryGateway([thing("Job")])
    write = Write(verb=Verb.SCALE, target=SUSPEND.target, body={}, resource_version=None)
    with pytest.raises(RefusedError, match="scale"):
        gateway.write(write)


def test_writes_and_calls_are_counted() -> None:
    gateway = MemoryGateway([thing("Job")])
    gateway.rehearse(SUSPEND)
    gateway.write(SUSPEND)
    gateway.read(SUSPEND.target)
    assert (gateway.writes, gateway.call_count) == ([SUSPEND], 3)


def test_a_write_that_changes_nothing_moves_no_version() -> None:
    gateway = MemoryGateway([thing("Job")])
    first = gateway.write(SUSPEND)
    assert gateway.write(SUSPEND) == first


def test_a_new_spec_is_a_new_generation_and_new_labels_are_not() -> None:
    gateway = MemoryGateway([thing("Job")])
    labelled = Write(
        verb=Verb.PATCH,
        target=SUSPEND.target,
        body={"metadata": {"labels": {"a": "b"}}},
        resource_version=None,
    )
    generations = []
    for write in (labelled, SUSPEND):
        metadata = gateway.write(write)["metadata"]
        assert isinstance(metadata, dict)
        generations.append(metadata["generation"])
    assert generations == [1, 2]


def test_what_a_reader_does_with_its_copy_changes_nothing() -> None:
    gateway = MemoryGateway([thing("Job")])
    copy = gateway.read(SUSPEND.target)
    assert isinstance(copy, dict)
    spec = copy["spec"]
    assert isinstance(spec, dict)
    spec["suspend"] = True
    assert not is_suspended(gateway)


def test_a_dry_run_shows_what_would_be_and_changes_nothing() -> None:
    inner = MemoryGateway([thing("Job"), thing("Job", name="two")])
    gateway = DryRunGateway(inner)
    gateway.write(SUSPEND)
    seen = gateway.list(api_version="batch/v1", kind="Job", namespace=None)
    assert [each["spec"] for each in seen] == [{"suspend": True}, {}]
    assert not is_suspended(inner)
    assert (gateway.writes, inner.writes) == ([SUSPEND], [])


def test_a_dry_run_holds_to_what_was_read() -> None:
    inner = MemoryGateway([thing("Job")])
    gateway = DryRunGateway(inner)
    stale = Write(
        verb=Verb.PATCH, target=SUSPEND.target, body=SUSPEND.body, resource_version="an-old-one"
    )
    with pytest.raises(ConflictError):
        gateway.write(stale)


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="added"),
        pytest.param({"a": 1}, {"a": None}, {}, id="taken away"),
        pytest.param({}, {"a": None}, {}, id="was not there"),
        pytest.param({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}, id="deeper"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="a list as a whole"),
        pytest.param({"a": 1}, {"a": {"b": None}}, {"a": {}}, id="a number becomes an object"),
        pytest.param({"a": 0}, {"a": False}, {"a": False}, id="zero is not null"),
    ],
)
def test_a_merge_patch(old: JsonValue, patch: JsonValue, expected: JsonValue) -> None:
    assert merged(old, patch) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("a=1", True),
        ("a==1", True),
        ("a=2", False),
        ("a", True),
        ("b", False),
        ("!b", True),
        ("!a", False),
        ("a=1, !b", True),
        ("b=", False),
    ],
)
def test_a_selector(selector: str, *, expected: bool) -> None:
    assert is_selected({"a": "1"}, selector) is expected


def test_a_pod_of_another_namespace_is_not_listed() -> None:
    there: Json = {**pod(), "metadata": {"name": "pod", "namespace": "team-b"}}
    gateway = MemoryGateway([pod(), there])
    found = gateway.list(api_version="v1", kind="Pod", namespace="team-b")
    assert [target_of(each).namespace for each in found] == ["team-b"]
