"""Whatever an object looks like: taken and undone it is what it was, by the ledger alone."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from enforcer.actuators import (
    Act,
    Order,
    Refusal,
    RefusalReason,
    Surroundings,
    before_image,
    is_restored,
    is_taken,
    reclaim,
    restore,
    tidied,
)
from enforcer.actuators.fields import target_of
from enforcer.actuators.kinds import CATALOGUE, Actuator, Means
from enforcer.decisions import Step
from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.port import JsonValue, Write
from tests.support.enforcer_objects import Json, thing

ORDER = Order(action_id="a", at=datetime(2026, 6, 1, 12, tzinfo=UTC))
BY_FIELD = [each for each in CATALOGUE if each.means is not Means.COMMAND]
WORDS = st.sampled_from(["suspend", "active", "replicas", "paused", "runPolicy", "other"])
LEAVES = st.one_of(st.booleans(), st.integers(0, 3), st.just("text"))
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    LEAVES, lambda inner: st.dictionaries(WORDS, inner, max_size=3), max_leaves=4
)
SPECS = st.dictionaries(WORDS, VALUES, max_size=4)
ANNOTATIONS = st.dictionaries(st.sampled_from(["a", "b", "serving.kserve.io/stop"]), st.just("x"))


def put(spec: Json, actuator: Actuator, value: JsonValue) -> Json:
    """Return a spec with a value where the actuator writes; None: without the last key."""
    if actuator.path[0] != "spec":
        return spec
    _, *parents, last = actuator.path
    whole = dict(spec)
    place = whole
    for key in parents:
        inner = place.get(key)
        place[key] = dict(inner) if isinstance(inner, dict) else {}
        place = place[key]  # type: ignore[assignment]  # an object, just made
    place.pop(last, None)
    if value is not None:
        place[last] = value
    return whole


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(BY_FIELD), SPECS, ANNOTATIONS, st.sampled_from([None, False, True, 0, 2]))
def test_taken_and_undone_is_as_before(
    actuator: Actuator, spec: Json, annotations: Json, old: JsonValue
) -> None:
    whole = put({"shutdownAfterJobFinishes": True, **spec}, actuator, old)
    metadata: Json = {"annotations": annotations} if annotations else {}
    subject = thing(actuator.kind, group=actuator.group, spec=whole, metadata=metadata)
    gateway = MemoryGateway([subject])
    read = gateway.read(target_of(subject))
    assert read is not None
    act = reclaim(Step.SUSPEND, read, Surroundings(), order=ORDER)
    if isinstance(act, Refusal):
        assert act.reason in {RefusalReason.ALREADY_TAKEN, RefusalReason.NOT_SUSPENDABLE}
        return
    assert isinstance(act, Act)
    before = before_image(act.before.text())
    assert before == act.before
    taken = gateway.write(act.write)
    assert is_taken(before, taken)
    undo = restore(before, taken, order=ORDER)
    assert isinstance(undo, Write)
    restored = gateway.write(undo)
    assert is_restored(before, restored)
    tidy = tidied(before, restored)
    last = restored if tidy is None else gateway.write(tidy)
    assert last["spec"] == whole
    found = last["metadata"]
    assert isinstance(found, dict)
    assert (found.get("annotations") or {}) == annotations
