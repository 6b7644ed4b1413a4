"""A request for capacity as a person writes it."""

from __future__ import annotations

import pytest

from analytics.request import Request, request_from, text_of
from steward.errors import UsageError


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("gpus=1", Request()),
        ("gpus=0.25", Request(gpu_milli=250)),
        ("gpus=0.001", Request(gpu_milli=1)),
        (
            "gpus=4,workers=2,cpu=32,memory=64Gi,model=H100|A100",
            Request(
                gpu_count=4,
                worker_count=2,
                cpu_milli=32_000,
                memory_bytes=64 * 2**30,
                models=("H100", "A100"),
            ),
        ),
        (" gpus = 2 , cpu = 500m ", Request(gpu_count=2, cpu_milli=500)),
        ("gpus=1,cpu=0.5,memory=1.5G", Request(cpu_milli=500, memory_bytes=1_500_000_000)),
        ("mig=1g.5gb", Request(mig_profile="1g.5gb")),
        ("mig=3g.40gb,gpus=2", Request(mig_profile="3g.40gb", gpu_count=2)),
        ("gpus=64", Request(gpu_count=64)),
    ],
)
def test_requests(text: str, asked: Request) -> None:
    assert request_from(text) == asked
    assert request_from(text_of(asked)) == asked


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param("", "''", id="nothing"),
        pytest.param("gpus=4,", "''", id="an empty part"),
        pytest.param("gpu=4", "'gpu=4'", id="an unknown name"),
        pytest.param("gpus", "'gpus'", id="no value"),
        pytest.param("gpus=", "'gpus='", id="an empty value"),
        pytest.param("gpus=0", "'gpus=0'", id="zero"),
        pytest.param("gpus=-1", "'gpus=-1'", id="negative"),
        pytest.param("gpus=65", "'gpus=65'", id="more than a node has"),
        pytest.param("gpus=1.5", "'gpus=1.5'", id="more than one, not whole"),
        pytest.param("gpus=0.0001", "'gpus=0.0001'", id="finer than a milli-GPU"),
        pytest.param("gpus=1e3", "'gpus=1e3'", id="no plain number"),
        pytest.param("gpus=nan", "'gpus=nan'", id="no number"),
        pytest.param("gpus=1,gpus=2", "'gpus=2'", id="twice"),
        pytest.param("gpus=1,workers=0", "'workers=0'", id="no workers"),
        pytest.param("gpus=1,memory=64GiB", "'memory=64GiB'", id="an unknown unit"),
        pytest.param("gpus=1,memory=Gi", "'memory=Gi'", id="a unit alone"),
        pytest.param("gpus=1,model=H100|", "'model=H100|'", id="an empty model"),
        pytest.param("mig=big", "'mig=big'", id="no profile"),
        pytest.param("mig=1g.5gb,gpus=0.5", "'mig=1g.5gb'", id="part of an instance"),
        pytest.param("cpu=4", "'cpu=4'", id="no GPUs"),
    ],
)
def test_what_is_no_request_names_the_wrong_part(text: str, part: str) -> None:
    with pytest.raises(UsageError) as told:
        request_from(text)
    assert told.value.message.startswith(f"--fits: {part} ")
