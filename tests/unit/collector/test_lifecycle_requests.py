"""What pods ask for: amounts, GPUs of all makers, parts of GPUs, models."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import msgspec
import pytest

from collector.lifecycle.quantities import amount, milli, whole
from collector.lifecycle.requests import is_gpu_resource, model_name, request_of
from collector.lifecycle.sharing import on_node
from collector.sources.kubernetes.objects import Annotations, PodSpec, Quantity
from collector.sources.kubernetes.objects_cluster import Node
from tests.support.kubernetes_objects import Body, node, pod_spec


def spec(**options: object) -> PodSpec:
    """Return a decoded spec."""
    return msgspec.convert(pod_spec(**options), PodSpec)  # type: ignore[arg-type]  # free options


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0", Decimal(0), id="zero"),
        pytest.param(None, None, id="null"),
        pytest.param("", None, id="empty"),
        pytest.param("many", None, id="no number"),
        pytest.param("8", Decimal(8), id="plain"),
        pytest.param(8, Decimal(8), id="a number, as some custom objects write it"),
        pytest.param("500m", Decimal("0.5"), id="milli"),
        pytest.param("100u", Decimal("0.0001"), id="micro"),
        pytest.param("1k", Decimal(1_000), id="thousand"),
        pytest.param("1Ki", Decimal(1_024), id="binary"),
        pytest.param("2Ti", Decimal(2 * 1024**4), id="binary tera"),
        pytest.param("1.5Gi", Decimal(3 * 1024**3) / 2, id="fraction"),
        pytest.param("1e3", Decimal(1_000), id="power"),
        pytest.param("-1", Decimal(-1), id="negative"),
        pytest.param("1E", Decimal(10) ** 18, id="exa, not a power"),
        pytest.param(str(2**63 - 1), Decimal(2**63 - 1), id="as large as can be"),
        pytest.param(str(2**63), None, id="larger than can be"),
        pytest.param("1e999", None, id="absurd"),
    ],
)
def test_amount(text: Quantity | None, value: Decimal | None) -> None:
    assert amount(text) == value


@pytest.mark.parametrize(
    ("text", "pieces", "thousandths"),
    [
        pytest.param("999m", 1, 999, id="just inside"),
        pytest.param("1", 1, 1_000, id="exactly at"),
        pytest.param("1001m", 2, 1_001, id="just past"),
        pytest.param(None, None, None, id="null"),
    ],
)
def test_amounts_are_rounded_up(
    text: str | None, pieces: int | None, thousandths: int | None
) -> None:
    assert (whole(text), milli(text)) == (pieces, thousandths)


@pytest.mark.parametrize(
    ("requests", "count", "share", "resource"),
    [
        pytest.param({}, 0, None, None, id="no GPU"),
        pytest.param({"nvidia.com/gpu": "0"}, 0, None, None, id="zero GPUs"),
        pytest.param({"nvidia.com/gpu": "8"}, 8, 1_000, "nvidia.com/gpu", id="whole GPUs"),
        pytest.param({"amd.com/gpu": "2"}, 2, 1_000, "amd.com/gpu", id="AMD"),
        pytest.param(
            {"huawei.com/Ascend910B": "4"}, 4, 1_000, "huawei.com/Ascend910B", id="Ascend"
        ),
        pytest.param(
            {"huawei.com/Ascend910B": "1", "huawei.com/Ascend910B-memory": "16384"},
            1,
            1_000,
            "huawei.com/Ascend910B",
            id="Ascend memory is no device",
        ),
        pytest.param(
            {"nvidia.com/gpu.shared": "1"}, 1, None, "nvidia.com/gpu.shared", id="time slice"
        ),
        pytest.param(
            {"nvidia.com/mig-1g.5gb": "2"}, 2, 143, "nvidia.com/mig-1g.5gb", id="MIG slice"
        ),
        pytest.param(
            {"nvidia.com/mig-3g.20gb": "1"}, 1, 429, "nvidia.com/mig-3g.20gb", id="MIG half"
        ),
        pytest.param(
            {"nvidia.com/mig-1g.10gb.me": "1"},
            1,
            143,
            "nvidia.com/mig-1g.10gb.me",
            id="MIG slice with media engines",
        ),
        pytest.param(
            {"nvidia.com/mig-mixed": "1"},
            1,
            None,
            "nvidia.com/mig-mixed",
            id="MIG profile without a known size",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "30", "nvidia.com/gpumem": "4000"},
            1,
            300,
            "nvidia.com/gpu",
            id="HAMi cores",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "25"},
            1,
            250,
            "nvidia.com/gpu",
            id="HAMi share of memory",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"},
            1,
            None,
            "nvidia.com/gpu",
            id="HAMi memory: size depends on the board",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1", "nvidia.com/mig-1g.5gb": "1"},
            2,
            572,
            "nvidia.com/gpu|nvidia.com/mig-1g.5gb",
            id="mixed: mean",
        ),
        pytest.param({"rdma/hca": "1", "cpu": "2"}, 0, None, None, id="other devices"),
    ],
)
def test_request(
    requests: Mapping[str, str], count: int, share: int | None, resource: str | None
) -> None:
    found = request_of(spec(gpu_count=0, requests=requests))
    assert (found.gpu_count, found.gpu_milli, found.resource) == (count, share, resource)


@pytest.mark.parametrize(
    ("annotations", "count", "share", "memory_mib"),
    [
        pytest.param({"gpu-fraction": "0.5"}, 1, 500, None, id="half"),
        pytest.param(
            {"gpu-fraction": "0.6", "gpu-fraction-num-devices": "2"}, 2, 600, None, id="two parts"
        ),
        pytest.param({"gpu-memory": "2048"}, 1, None, 2_048, id="memory"),
        pytest.param({}, 0, None, None, id="nothing"),
    ],
)
def test_kai_fraction(
    annotations: Body, count: int, share: int | None, memory_mib: int | None
) -> None:
    found = request_of(spec(gpu_count=0), msgspec.convert(annotations, Annotations))
    assert (found.gpu_count, found.gpu_milli, found.gpu_memory_mib) == (count, share, memory_mib)


def test_processors_and_memory() -> None:
    found = request_of(spec())
    assert (found.cpu_milli, found.memory_bytes) == (4_000, 8 * 1024**3)


def test_nothing_said_is_not_zero() -> None:
    found = request_of(msgspec.convert({"containers": [{"name": "main"}]}, PodSpec))
    assert (found.cpu_milli, found.memory_bytes, found.gpu_count) == (None, None, 0)


def test_init_containers_need_at_a_time_and_sidecars_all_the_time() -> None:
    def container(cpu: str, **more: str) -> Body:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    body = {
        "initContainers": [container("1", restartPolicy="Always"), container("6")],
        "containers": [container("2"), container("2")],
    }
    assert request_of(msgspec.convert(body, PodSpec)).cpu_milli == 6_000
    body["containers"].append(container("2"))
    assert request_of(msgspec.convert(body, PodSpec)).cpu_milli == 7_000


def test_models_from_selector_and_affinity() -> None:
    term = {
        "matchExpressions": [
            {
                "key": "nvidia.com/gpu.product",
                "operator": "In",
                "values": ["NVIDIA-H200", "NVIDIA-H100-80GB-HBM3-SHARED"],
            },
            {"key": "nvidia.com/gpu.product", "operator": "NotIn", "values": ["Tesla-T4"]},
        ]
    }
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    }
    selector = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    found = request_of(spec(affinity=affinity, nodeSelector=selector))
    assert found.models == ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H200")


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-SHARED", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-40GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "NVIDIA-A100-SXM4-40GB"),
    ],
)
def test_model_name(product: str, model: str) -> None:
    assert model_name(product) == model


@pytest.mark.parametrize(
    ("requests", "labels", "share"),
    [
        pytest.param(
            {"nvidia.com/gpu.shared": "1"},
            {"nvidia.com/gpu.replicas": "4"},
            250,
            id="renamed time slice",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1"},
            {"nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.sharing-strategy": "mps"},
            100,
            id="MPS under the plain name",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1"},
            {"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"},
            1_000,
            id="not shared",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20000"},
            {"nvidia.com/gpu.memory": "80000"},
            250,
            id="memory of a known board",
        ),
        pytest.param(
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "20000"},
            {},
            None,
            id="memory of an unknown board",
        ),
    ],
)
def test_share_as_the_node_has_it(
    requests: Mapping[str, str], labels: Mapping[str, str], share: int | None
) -> None:
    request = request_of(spec(gpu_count=0, requests=requests))
    found = on_node(request, msgspec.convert(node(labels=labels), Node, strict=False))
    assert found.gpu_milli == share
    assert on_node(request, None) == request


@pytest.mark.parametrize("name", ["cpu", "memory", "nvidia.com/gpumem", "nvidia.com/gpucores"])
def test_what_counts_no_devices(name: str) -> None:
    assert not is_gpu_resource(name)
