"""The doctor's words on one exporter: a case for each code, and boundaries in threes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from collector.agent import names
from collector.doctor import agent_words
from collector.doctor.exporters import OLD_LIMIT_S, SKEW_LIMIT_S, exporter_findings
from collector.doctor.finding import Finding, Severity
from collector.doctor.fleet import views_findings
from tests.support.doctor_views import GPU_MODEL, answer, codes, told, view
from tests.support.exposition_texts import NOON, line

PROFILING = (
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
)


def missing(findings: Sequence[Finding]) -> list[str]:
    """Return the codes."""
    return codes(findings)


def one(findings: Sequence[Finding], code: str) -> Finding:
    (found,) = [each for each in findings if each.code == code]
    return found


def test_a_complete_target_is_fine() -> None:
    whole = view(answer())
    assert exporter_findings(whole) == []
    assert told(views_findings([whole])) == [("fine", "target_complete")]
    poor = view(answer(without=("DCGM_FI_DEV_FB_USED",)))
    assert told(views_findings([poor])) == [("gap", "memory_absent")]


def test_a_target_without_devices_is_a_fault_and_nothing_else() -> None:
    (found,) = exporter_findings(view(["up 1", "go_goroutines 8"]))
    assert (found.severity, found.code) == (Severity.FAULT, "no_devices")
    assert "2 samples, none of them of a GPU; names it has: go_goroutines, up" in found.message


def test_an_agent_whose_driver_is_away_says_so() -> None:
    (found,) = exporter_findings(view(['steward_agent_driver_up{node="n1"} 0']))
    assert (found.code, found.message) == (
        "no_devices",
        "the agent answers, and the driver does not",
    )


@pytest.mark.parametrize(
    ("without", "code"),
    [
        pytest.param((), None, id="SM, tensor and memory activity"),
        pytest.param(PROFILING[:1], None, id="tensor and memory activity: tier 1 too"),
        pytest.param(PROFILING[1:2], "profiling_partial", id="no tensor activity: an upper bound"),
        pytest.param(PROFILING[2:], "profiling_partial", id="no memory activity: an upper bound"),
        pytest.param(PROFILING[::2], "profiling_absent", id="tensor activity alone says nothing"),
        pytest.param(PROFILING, "profiling_absent", id="none"),
    ],
)
def test_profiling(without: tuple[str, ...], code: str | None) -> None:
    found = exporter_findings(view(answer(without=without)))
    assert missing(found) == ([] if code is None else [code])
    if code is not None:
        assert one(found, code).severity is Severity.GAP


def test_profiling_of_zero_is_known() -> None:
    zero = [line(name, 0, GPU_MODEL) for name in PROFILING]
    assert missing(exporter_findings(view(answer(without=PROFILING, more=zero)))) == []


def test_all_floating_pipes_stand_for_tensor_activity() -> None:
    pipes = [line(f"DCGM_FI_PROF_PIPE_FP{n}_ACTIVE", 0.1, GPU_MODEL) for n in (64, 32, 16)]
    lines = answer(without=PROFILING[:2], more=pipes)
    assert missing(exporter_findings(view(lines))) == []
    assert missing(exporter_findings(view(lines[:-1]))) == ["profiling_absent"]


@pytest.mark.parametrize(
    ("profiled", "code"),
    [
        pytest.param(0, "profiling_absent", id="none of three"),
        pytest.param(1, "profiling_uneven", id="one of three"),
        pytest.param(2, "profiling_uneven", id="two of three"),
        pytest.param(3, None, id="all"),
    ],
)
def test_instances_without_profiling(profiled: int, code: str | None) -> None:
    lines = [line("DCGM_FI_DEV_POWER_USAGE", 100, GPU_MODEL)]
    for number in range(3):
        labels = GPU_MODEL | {"GPU_I_ID": str(number), "GPU_I_PROFILE": "1g.10gb"}
        lines += [line("DCGM_FI_DEV_FB_USED", 5, labels)]
        lines += [line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.2, labels)]
        if number < profiled:
            lines += [line(name, 0.2, labels) for name in PROFILING]
    found = exporter_findings(view(lines))
    assert missing(found) == ([] if code is None else [code])
    if code == "profiling_uneven":
        assert f"{3 - profiled} of 3 MIG instances" in one(found, code).message


def test_graphics_activity_is_named_where_it_is_all() -> None:
    more = [line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.3, GPU_MODEL)]
    found = exporter_findings(view(answer(without=PROFILING, more=more)))
    assert one(found, "profiling_absent").message.startswith(
        "no profiling metrics beyond graphics activity:"
    )


@pytest.mark.parametrize(
    ("lines", "remedy"),
    [
        pytest.param(answer(without=PROFILING), "dcgm-exporter's list", id="dcgm-exporter"),
        pytest.param(
            ['gpu_gfx_activity{gpu_id="0",gpu_uuid="u",card_series="MI300X",hostname="n1"} 5'],
            "GPU_PROF_ fields",
            id="device-metrics-exporter",
        ),
        pytest.param(
            ['nvidia_smi_utilization_gpu_ratio{uuid="u"} 0.5'],
            "beside it",
            id="nvidia_gpu_exporter",
        ),
        pytest.param(
            ['npu_chip_info_utilization{id="0",vdie_id="V",model_name="910B"} 5'],
            "npu-exporter has no such metrics",
            id="npu-exporter",
        ),
    ],
)
def test_the_remedy_for_profiling_is_the_vendors(lines: list[str], remedy: str) -> None:
    found = exporter_findings(view(lines))
    assert remedy in (one(found, "profiling_absent").remedy or "")


def test_devices_that_tell_nothing_of_their_work() -> None:
    silent = answer(without=("DCGM_FI_DEV_GPU_UTIL", *PROFILING))
    found = one(exporter_findings(view(silent)), "utilisation_absent")
    assert found.severity is Severity.GAP
    assert found.message.startswith("neither a duty cycle nor graphics activity for 1 of 1 devices")
    zero = [line("DCGM_FI_DEV_GPU_UTIL", 0, GPU_MODEL)]
    assert "utilisation_absent" not in missing(exporter_findings(view([*silent, *zero])))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("DCGM_FI_DEV_FB_USED", "memory_absent"),
        ("DCGM_FI_DEV_POWER_USAGE", "power_absent"),
    ],
)
def test_absent_and_zero_are_not_the_same(name: str, code: str) -> None:
    assert missing(exporter_findings(view(answer(without=(name,))))) == [code]
    zero = answer(without=(name,), more=[line(name, 0, GPU_MODEL)])
    assert missing(exporter_findings(view(zero))) == []


def test_energy_stands_for_power() -> None:
    energy = [line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 5000, GPU_MODEL)]
    lines = answer(without=("DCGM_FI_DEV_POWER_USAGE",), more=energy)
    assert missing(exporter_findings(view(lines))) == []


def test_a_value_that_may_be_ratio_or_percentage() -> None:
    labels = dict(GPU_MODEL)
    lines = [line("DCGM_FI_DEV_GPU_UTIL_RATIO", 1, labels)]
    found = exporter_findings(view(lines))
    assert "busy_ratio" in one(found, "unit_unsettled").message


def test_measures_that_the_exporter_may_not_read() -> None:
    denied = [line("DCGM_FI_DEV_MEMORY_TEMP", 2147483635, GPU_MODEL)]
    found = exporter_findings(view(answer(more=denied)))
    assert told(found) == [("note", "values_not_permitted")]
    assert "memory_temperature_celsius" in found[0].message


@pytest.mark.parametrize(
    ("skew_s", "is_told"),
    [
        pytest.param(None, False, id="no clock"),
        pytest.param(0.0, False, id="none"),
        pytest.param(SKEW_LIMIT_S - 0.1, False, id="just inside"),
        pytest.param(SKEW_LIMIT_S, True, id="exactly at the limit"),
        pytest.param(SKEW_LIMIT_S + 0.1, True, id="just past"),
        pytest.param(-SKEW_LIMIT_S + 0.1, False, id="behind, just inside"),
        pytest.param(-SKEW_LIMIT_S, True, id="behind, at the limit"),
        pytest.param(-SKEW_LIMIT_S - 0.1, True, id="behind, past"),
    ],
)
def test_clock_skew(skew_s: float | None, *, is_told: bool) -> None:
    found = exporter_findings(view(answer(), skew_s=skew_s))
    assert missing(found) == (["clock_skew"] if is_told else [])
    if is_told:
        way = "ahead of" if (skew_s or 0) > 0 else "behind"
        assert f"5 s {way} this machine's" in one(found, "clock_skew").message


def stamped(age_s: float) -> list[str]:
    """Return the board's lines with their own time, so long before noon."""
    at_ms = round((NOON.timestamp() - age_s) * 1000)
    return [f"{text} {at_ms}" for text in answer()]


@pytest.mark.parametrize(
    ("age_s", "code"),
    [
        pytest.param(0, None, id="fresh"),
        pytest.param(OLD_LIMIT_S - 1, None, id="just inside"),
        pytest.param(OLD_LIMIT_S, "values_old", id="exactly at the limit"),
        pytest.param(OLD_LIMIT_S + 1, "values_old", id="just past"),
        pytest.param(-SKEW_LIMIT_S + 1, None, id="a little ahead"),
        pytest.param(-SKEW_LIMIT_S, "clock_skew", id="ahead at the limit"),
        pytest.param(-SKEW_LIMIT_S - 1, "clock_skew", id="ahead past it"),
    ],
)
def test_own_times_of_values(age_s: float, code: str | None) -> None:
    assert missing(exporter_findings(view(stamped(age_s)))) == ([] if code is None else [code])


def test_old_values_are_judged_by_the_exporters_own_clock() -> None:
    behind = exporter_findings(view(stamped(300), skew_s=-300.0))
    assert missing(behind) == ["clock_skew"]


def test_devices_without_uuid() -> None:
    found = exporter_findings(view(answer(labels={"UUID": ""})))
    assert missing(found) == ["uuid_absent"]
    assert "1 of 1 devices" in one(found, "uuid_absent").message


def test_devices_without_model() -> None:
    found = exporter_findings(view(answer(labels={"modelName": ""})))
    assert missing(found) == ["model_absent"]


@pytest.mark.parametrize(
    ("hostname", "words"),
    [
        pytest.param("localhost", "its label says localhost, which is no node", id="remote engine"),
        pytest.param("dcgm-exporter-6ldbb", "its label says dcgm-exporter-6ldbb", id="the pod"),
        pytest.param("", "it does not name its node", id="no name"),
    ],
)
def test_a_node_named_by_the_address(hostname: str, words: str) -> None:
    lines = answer(labels={"Hostname": hostname})
    found = exporter_findings(view(lines))
    assert told(found) == [("note", "node_from_address")]
    assert found[0].message.startswith(words)
    assert found[0].message.endswith("the node is called 10.0.0.5 after the address")
    assert missing(exporter_findings(view(lines, node="n1"))) == []


def test_no_labels_for_pods_outside_and_inside_kubernetes() -> None:
    lines = answer(hidden=("pod", "namespace", "container"))
    assert missing(exporter_findings(view(lines))) == ["pod_labels_absent"]
    assert missing(exporter_findings(view(lines, pod="dcgm-x"))) == ["no_podresources"]
    assert missing(exporter_findings(view(lines, cluster_nodes=["n1"]))) == ["no_podresources"]
    assert missing(exporter_findings(view(lines, cluster_nodes=["n2"]))) == ["pod_labels_absent"]


def test_labels_for_pods_that_are_all_empty() -> None:
    found = exporter_findings(view(answer(labels={"pod": "", "namespace": "", "container": ""})))
    assert told(found) == [("note", "no_holder_told")]


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("absent", "mount /var/lib/kubelet/pod-resources"),
        ("no_permission", "run as root"),
        ("timeout", "kubelet is slow"),
        ("unavailable", "start the kubelet"),
        ("broken", "log of the agent"),
    ],
)
def test_an_agent_without_the_kubelets_word(reason: str, remedy: str) -> None:
    said = f'steward_agent_pod_resources_up{{node="n1",reason="{reason}"}} 0'
    found = exporter_findings(view(answer(more=[said])))
    assert one(found, "no_podresources").message.count(f"({reason})") == 1
    assert remedy in (one(found, "no_podresources").remedy or "")


def test_an_agent_that_hears_the_kubelet_and_no_device_is_held() -> None:
    said = 'steward_agent_pod_resources_up{node="n1",reason=""} 1'
    assert missing(exporter_findings(view(answer(labels={"pod": ""}, more=[said])))) == []


@pytest.mark.parametrize(
    ("count", "is_told"), [(0, False), (1, True), (2, True)], ids=["none", "one", "two"]
)
def test_devices_that_the_agent_cannot_resolve(count: int, *, is_told: bool) -> None:
    said = f'steward_agent_unresolved_devices{{node="n1"}} {count}'
    found = exporter_findings(view(answer(more=[said])))
    assert missing(found) == (["devices_unresolved"] if is_told else [])


def test_gpus_that_do_not_answer_the_agent() -> None:
    said = [
        'steward_gpu_up{uuid="GPU-a",gpu="0",node="n1",instance_id="",reason=""} 1',
        'steward_gpu_up{uuid="GPU-b",gpu="1",node="n1",instance_id="",reason="lost"} 0',
    ]
    found = exporter_findings(view(answer(more=said)))
    assert missing(found) == ["devices_silent"]
    assert found[0].message == "the driver gets no answer from GPU-b (lost)"


def test_the_agents_names_are_the_agents() -> None:
    assert (
        names.POD_RESOURCES_UP.name,
        names.DRIVER_UP.name,
        names.UP.name,
        names.UNRESOLVED.name,
    ) == (
        agent_words.POD_RESOURCES_UP,
        agent_words.DRIVER_UP,
        agent_words.DEVICE_UP,
        agent_words.UNRESOLVED,
    )


def test_devices_held_by_several_pods() -> None:
    copies = [line("DCGM_FI_DEV_GPU_UTIL", 97, GPU_MODEL | {"pod": f"train-{n}"}) for n in range(3)]
    found = exporter_findings(view(answer(more=copies)))
    assert told(found) == [
        ("note", "devices_shared"),
        ("note", "values_repeated"),
    ]
    assert "up to 3 pods" in found[0].message


def test_the_same_value_twice_counts_once() -> None:
    found = exporter_findings(view([*answer(), *answer()]))
    assert one(found, "values_repeated").message.startswith("6 values came before")
    assert "0 of them with another number" in one(found, "values_repeated").message


def test_lines_that_cannot_be_read() -> None:
    broken = 'DCGM_FI_DEV_VGPU_INSTANCE_IDS{gpu="0"} ERROR - FAILED TO CONVERT TO STRING'
    found = exporter_findings(view(answer(more=[broken])))
    assert told(found) == [("note", "lines_dropped")]
    assert found[0].message.startswith("1 line cannot be read, the first is line 7 (")


def test_names_that_are_not_used() -> None:
    others = [line(f"DCGM_FI_DEV_NEW_{n}", 1, GPU_MODEL) for n in range(7)]
    found = exporter_findings(view(answer(more=others)))
    assert one(found, "names_unknown").message == (
        "7 metric names not used: DCGM_FI_DEV_NEW_0, DCGM_FI_DEV_NEW_1, DCGM_FI_DEV_NEW_2, "
        "DCGM_FI_DEV_NEW_3, DCGM_FI_DEV_NEW_4 and 2 more"
    )


def test_what_an_exporter_says_of_itself_is_no_unknown_name() -> None:
    own = ["go_goroutines 8", "process_open_fds 9", "promhttp_metric_handler_requests_total 1"]
    assert missing(exporter_findings(view(answer(more=own)))) == []


def test_values_that_stand_still_for_an_interval() -> None:
    moved = answer(
        without=("DCGM_FI_DEV_POWER_USAGE",),
        more=[line("DCGM_FI_DEV_POWER_USAGE", 300.6, GPU_MODEL)],
    )
    assert missing(exporter_findings(view(answer(), second=moved))) == []
    assert told(exporter_findings(view(answer(), second=answer()))) == [
        ("note", "values_cached"),
    ]


def test_without_power_standing_still_says_nothing() -> None:
    lines = answer(without=("DCGM_FI_DEV_POWER_USAGE",))
    assert missing(exporter_findings(view(lines, second=lines))) == ["power_absent"]
