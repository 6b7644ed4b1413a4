"""Answers that no Prometheus gives: one clear error, whatever they hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from collector.backfill.api import PrometheusApi
from steward.errors import SourceError
from steward.period import Period
from tests.support.backfill_answers import Said, answering_server, matrix, vector

SPAN = Period(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 5, tzinfo=UTC))
START_S = SPAN.from_at.timestamp()
DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "second", [1e308, -1e308, 253_402_300_800.0, -62_135_596_801.0, float("inf"), float("nan")]
)
def test_an_instant_outside_the_calendar_is_no_answer(second: float) -> None:
    check(matrix(({"__name__": "a"}, [(second, "1")])))


@pytest.mark.parametrize("text", ["", "abc", "0x1", "1_0", " 1", "1e", "Infinity", "--1", "\u0661"])
def test_a_value_that_is_no_number_is_no_answer(text: str) -> None:
    check(matrix(({"__name__": "a"}, [(START_S, text)])))


@pytest.mark.parametrize("text", ["0", "-0", "1.", ".5", "+1e-9", "1e400", "NaN", "Inf", "-Inf"])
def test_every_number_that_prometheus_writes_is_one(text: str) -> None:
    with (
        answering_server([matrix(({"__name__": "a"}, [(START_S, text)]))]) as server,
        PrometheusApi(url=server.url, headers={}) as api,
    ):
        (series,) = api.samples("a", SPAN)
    assert series.values == [(START_S, text)]


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        b'{"status": "success", "data": ' + DEEP + b"}",
        b'{"status": "success", "data": {"resultType": "matrix", "result": ' + DEEP + b"}}",
        b'{"status": "success", "data": {"resultType": "matrix", "x": ' + DEEP + b"}}",
        b'{"status": "succ',
        b"null",
        b"\xff\xfe",
    ],
)
def test_a_document_of_another_shape_is_no_answer(body: bytes) -> None:
    check(Said(body=body))


@pytest.mark.parametrize(("second", "text"), [(1e308, "1"), (START_S, "abc")])
def test_an_instant_vector_is_held_to_the_same(second: float, text: str) -> None:
    with (
        answering_server([vector(({}, second, text))]) as server,
        PrometheusApi(url=server.url, headers={}, pause=lambda _: None) as api,
        pytest.raises(SourceError, match="not with the HTTP API of Prometheus"),
    ):
        api.vector("a", at=SPAN.from_at)


def check(said: Said) -> None:
    """The question is refused with one error that names the server."""
    with (
        answering_server([said]) as server,
        PrometheusApi(url=server.url, headers={}, pause=lambda _: None) as api,
    ):
        with pytest.raises(SourceError, match="not with the HTTP API of Prometheus") as told:
            api.samples("a", SPAN)
        assert server.url in told.value.message
