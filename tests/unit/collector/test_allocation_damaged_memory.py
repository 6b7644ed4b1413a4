"""Damaged memory is one clear error that names the next step, never a wrong start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.allocation.builder import AllocationBuilder
from collector.allocation.polls import Output, Poll
from collector.attribution import NoOwners
from collector.holdings import Holding, HoldingSource
from steward.errors import InputError
from steward.ids import ClusterName

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
STRANGE = (b"", b"null", b"[]", b"{}", b"1", b'"x"', b"\xff", b"[" * 5_000)


def builder(memory: dict[str, bytes]) -> AllocationBuilder:
    return AllocationBuilder(cluster=ClusterName("c1"), poll_s=15, owners=NoOwners(), memory=memory)


def poll(pod: str, after_s: float) -> Poll:
    held = Holding(
        node="n1",
        device_uuid="GPU-1",
        instance_id=None,
        replica=None,
        namespace="a",
        pod=pod,
        container="c",
        claim=None,
        resource=None,
        source=HoldingSource.PODRESOURCES,
    )
    at = NOON + timedelta(seconds=after_s)
    return Poll(node="n1", at=at, source=HoldingSource.PODRESOURCES, holdings=(held,))


@pytest.fixture(scope="module")
def memory() -> dict[str, bytes]:
    """Return what is remembered of a node whose holder changed."""
    kept: dict[str, bytes] = {}
    began = builder({})
    finished_at = NOON + timedelta(seconds=20)
    outputs: list[Output] = [began.observe(poll(f"p{n // 2}", 15 * n)) for n in range(4)]
    outputs.append(began.pod_finished("a", "p0", pod_uid="u", finished_at=finished_at))
    outputs.append(began.advance(NOON + timedelta(minutes=1)))
    for output in outputs:
        kept |= {key: value for key, value in output.remember.items() if value is not None}
    return kept


@pytest.mark.parametrize("damage", STRANGE)
def test_an_entry_that_is_none_is_told(memory: dict[str, bytes], damage: bytes) -> None:
    assert "allocation/node/n1" in memory
    with pytest.raises(InputError, match="remembers of who held what") as caught:
        builder({**memory, "allocation/node/n1": damage})
    assert "spool away" in caught.value.hint
