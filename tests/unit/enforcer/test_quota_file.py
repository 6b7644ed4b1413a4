"""Quota files as people write them: what is read, what is refused and in which words."""

from __future__ import annotations

from datetime import timedelta

import jsonschema
import pytest
import yaml

from enforcer.quota.model import ANY, HoldingCap, Scheduler, Share
from enforcer.quota.reading import quota_from, quota_schema
from steward.errors import InputError

WHOLE = """
cluster: prod
scheduler: kueue
models:
  - {gpu_model: L40S, flavor: l40s, node_label_values: [NVIDIA-L40S], capacity: 16}
  - {gpu_model: H100, flavor: h100, capacity: 32}
teams:
  - team: vision
    namespaces: [vision-dev, vision]
    gpus:
      - {gpu_model: L40S, guaranteed: 0, borrow: 4}
      - {gpu_model: H100, guaranteed: 8, lend: 6}
  - team: audio
    queue: sound
    gpus: [{gpu_model: H100, guaranteed: 24, borrow: 0}]
priorities: [low, normal, high]
ceilings:
  - {highest: normal}
  - {team: vision, class: training, highest: high}
caps:
  - {class: development, per_owner_workloads: 2, longest: 7d}
"""


def test_a_whole_file_is_read_in_a_defined_order() -> None:
    file = quota_from(WHOLE, name="quota.yaml")
    assert (file.cluster, file.scheduler) == ("prod", Scheduler.KUEUE)
    assert [one.gpu_model for one in file.models] == ["H100", "L40S"]
    assert [(one.tenant_id, one.queue) for one in file.teams] == [
        ("audio", "sound"),
        ("vision", "vision"),
    ]
    assert file.teams[1].namespaces == ("vision", "vision-dev")
    assert file.teams[1].shares == (
        Share(gpu_model="H100", guaranteed_gpu_count=8, borrow_gpu_count=None, lend_gpu_count=6),
        Share(gpu_model="L40S", guaranteed_gpu_count=0, borrow_gpu_count=4, lend_gpu_count=None),
    )
    assert file.ceiling("audio", None) == "normal"
    assert file.caps == (
        HoldingCap(
            workload_class="development",
            per_owner_workload_count=2,
            per_owner_gpu_count=None,
            longest=timedelta(days=7),
        ),
    )
    assert file.ceilings[0].tenant_id == ANY


@pytest.mark.parametrize(
    ("guaranteed", "is_refused"),
    [
        pytest.param(23, False, id="one below capacity"),
        pytest.param(24, False, id="all of it"),
        pytest.param(25, True, id="one more"),
    ],
)
def test_scenario_36_guarantees_beyond_capacity_are_refused(
    guaranteed: int, is_refused: bool
) -> None:
    text = WHOLE.replace("guaranteed: 24", f"guaranteed: {guaranteed}")
    if not is_refused:
        assert quota_from(text, name="q").teams[0].shares[0].guaranteed_gpu_count == guaranteed
        return
    with pytest.raises(InputError, match="33 H100 are guaranteed, but there are 32"):
        quota_from(text, name="q")


def test_without_a_capacity_nothing_is_held_against_it() -> None:
    text = WHOLE.replace(", capacity: 32", "").replace("guaranteed: 24", "guaranteed: 9999")
    assert quota_from(text, name="q").model("H100") is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("scheduler: kueue", "scheduler: cron", "scheduler: must be one of", id="word"),
        pytest.param("guaranteed: 8", "guaranteed: -1", "must be a whole number", id="negative"),
        pytest.param("guaranteed: 8", "guaranteed: 8.5", "must be a whole number", id="half"),
        pytest.param("guaranteed: 8", "guarantee: 8", "guarantee: is not known", id="unknown key"),
        pytest.param("lend: 6", "lend: 9", "lends 9 H100 of a guarantee of 8", id="lends more"),
        pytest.param("team: audio", "team: vision", "'vision' is written 2 times", id="team twice"),
        pytest.param("queue: sound", "queue: vision", "as queue: 'vision'", id="queue twice"),
        pytest.param("[low, normal, high]", "[low, high]", "'normal' is not in", id="no such rank"),
        pytest.param("model: L40S, g", "model: L4, g", "'L4' is not in the list", id="no model"),
        pytest.param("7d", "a week", "must be a length such as", id="length"),
        pytest.param("cluster: prod", "", "cluster: is missing", id="no cluster"),
    ],
)
def test_a_fault_is_named_with_its_place(old: str, new: str, words: str) -> None:
    assert old in WHOLE
    with pytest.raises(InputError) as refused:
        quota_from(WHOLE.replace(old, new, 1), name="quota.yaml")
    assert words in refused.value.message
    assert refused.value.message.startswith("quota.yaml is refused:")


def test_all_faults_are_told_at_once() -> None:
    text = WHOLE.replace("scheduler: kueue", "scheduler: cron").replace("7d", "soon")
    with pytest.raises(InputError) as refused:
        quota_from(text, name="q")
    assert refused.value.message.count("\n") == 2


@pytest.mark.parametrize("text", ["", "[]", "just words", "a: [", "12"])
def test_what_is_no_quota_file_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        quota_from(text, name="q")


def test_the_schema_is_valid_and_takes_the_whole_file() -> None:
    schema = quota_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(WHOLE), schema)
