"""What a server may answer, and what becomes of it: an answer, another try, less, or one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from collector.backfill import api as api_module
from collector.backfill.addresses import headers_from, server_url
from collector.backfill.api import PAUSES_S, PrometheusApi, TooMuchError
from steward.errors import InputError, SourceError, UsageError
from steward.period import Period
from tests.support.backfill_answers import (
    AnsweringServer,
    Said,
    answering_server,
    fault,
    matrix,
    success,
    vector,
)
from tests.support.exporter_server import closed_port

SPAN = Period(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 5, tzinfo=UTC))
START_S = SPAN.from_at.timestamp()
GOOD = vector(({}, 1.0, "1"))


@contextmanager
def asking(
    *answers: Said, **options: float
) -> Iterator[tuple[PrometheusApi, AnsweringServer, list[float]]]:
    """Yield an API of a server with these answers, and the pauses it makes."""
    pauses: list[float] = []
    with (
        answering_server(answers) as server,
        PrometheusApi(
            url=server.url,
            headers={"authorization": "Bearer s3cret"},
            pause=pauses.append,
            timeout_s=options.get("timeout_s", 10.0),
        ) as api,
    ):
        yield api, server, pauses


def test_a_range_is_asked_for_as_what_is_stored() -> None:
    with asking(matrix(({"__name__": "a"}, [(START_S, "1"), (START_S + 30, "2")]))) as (
        api,
        server,
        _,
    ):
        (series,) = api.samples('{__name__=~"a"}', SPAN)
    assert series.metric == {"__name__": "a"}
    assert series.values == [(START_S, "1"), (START_S + 30, "2")]
    method, path, headers, body = server.questions[0]
    question = parse_qs(body)
    assert (method, path) == ("POST", "/api/v1/query")
    assert question["query"] == ['{__name__=~"a"}[300000ms]']
    assert question["time"] == [f"{SPAN.until_at.timestamp() - 0.001:.3f}"]
    assert headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("offset_s", "is_kept"),
    [
        pytest.param(-0.001, False, id="a millisecond before the span: Prometheus 2 gives it"),
        pytest.param(0.0, True, id="its first instant"),
        pytest.param(0.001, True, id="a millisecond inside"),
    ],
)
def test_the_left_end_is_cut_alike_for_all_servers(offset_s: float, *, is_kept: bool) -> None:
    with asking(matrix(({"__name__": "a"}, [(START_S + offset_s, "1")]))) as (api, _, _pauses):
        assert bool(api.samples("{}", SPAN)) == is_kept


@pytest.mark.parametrize(
    "passing",
    [
        pytest.param(Said(status=503, body=b"starting"), id="503"),
        pytest.param(Said(status=502), id="502"),
        pytest.param(Said(status=429, body=b"too many requests"), id="429"),
        pytest.param(fault(429, "too_many", "too many outstanding requests"), id="429 of an API"),
        pytest.param(fault(500, "internal", "head is being compacted"), id="500"),
    ],
)
def test_a_passing_failure_is_asked_again(passing: Said) -> None:
    with asking(passing, passing, GOOD) as (api, server, pauses):
        api.vector("a", at=SPAN.from_at)
        assert len(server.questions) == 3
        assert api.retry_count == 2
    assert pauses == list(PAUSES_S[:2])


def test_a_failure_that_stays_is_told_after_all_tries() -> None:
    with asking(Said(status=503)) as (api, server, pauses):
        with pytest.raises(SourceError, match="HTTP 503"):
            api.vector("a", at=SPAN.from_at)
        assert len(server.questions) == len(PAUSES_S) + 1
    assert pauses == list(PAUSES_S)


def test_nobody_listening_is_told_at_once_at_first_and_later_after_all_tries() -> None:
    pauses: list[float] = []
    with (
        closed_port() as port,
        PrometheusApi(url=f"http://127.0.0.1:{port}", pause=pauses.append) as api,
    ):
        with pytest.raises(SourceError, match=r"cannot be reached.*refused"):
            api.check()
        assert not pauses
        with pytest.raises(SourceError, match=r"cannot be reached.*refused"):
            api.names(SPAN)
    assert pauses == list(PAUSES_S)


@pytest.mark.parametrize(
    ("answer", "told", "hint"),
    [
        pytest.param(Said(status=401, body=b"no"), "refuses access", "--headers-file", id="401"),
        pytest.param(fault(403, "x", "forbidden"), "403.: forbidden", "--headers-file", id="403"),
        pytest.param(
            Said(body=b"<html>login</html>"), "answers with HTML", "/prometheus", id="HTML"
        ),
        pytest.param(Said(body=b'{"a":1}'), "something else", "/prometheus", id="other JSON"),
        pytest.param(Said(status=404, body=b"404"), "HTTP 404", "/select/0/prometheus", id="404"),
        pytest.param(
            Said(status=302, headers={"location": "http://x/graph"}),
            "redirects to http://x",
            "--url",
            id="302",
        ),
        pytest.param(
            fault(400, "bad_data", "1:3: parse error: too many braces"),
            "refuses the question",
            "--match",
            id="400",
        ),
        pytest.param(
            success({"resultType": "string", "result": [1, "a"]}),
            "something else",
            "",
            id="other type",
        ),
    ],
)
def test_what_asking_again_would_not_change_is_told_at_once(
    answer: Said, told: str, *, hint: str
) -> None:
    with asking(answer) as (api, server, pauses):
        with pytest.raises(SourceError, match=told) as error:
            api.check()
        assert len(server.questions) == 1
    assert not pauses
    assert hint in error.value.hint
    assert "s3cret" not in error.value.message + error.value.hint


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            fault(422, "execution", "query processing would load too many samples into memory"),
            id="Prometheus: samples",
        ),
        pytest.param(
            fault(503, "timeout", "query timed out in expression evaluation"), id="Prometheus: time"
        ),
        pytest.param(
            fault(
                422,
                "execution",
                "the query exceeded the maximum number of chunks (err-mimir-max-chunks)",
            ),
            id="Mimir",
        ),
        pytest.param(
            fault(
                422, "422", "cannot select more than -search.maxSamplesPerQuery=1000000000 samples"
            ),
            id="VictoriaMetrics",
        ),
        pytest.param(fault(500, "internal", "exceeded series limit: got 12 want 10"), id="Thanos"),
    ],
)
def test_too_much_is_told_apart(answer: Said) -> None:
    with asking(answer) as (api, _, pauses), pytest.raises(TooMuchError):
        api.samples("{}", SPAN)
    assert not pauses


def test_an_answer_beyond_the_limit_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit is a constant of the module; a test with 64 MiB would only be slower.
    monkeypatch.setattr(api_module, "ANSWER_LIMIT_BYTES", len(GOOD.body) - 1)
    with asking(GOOD) as (api, _, _pauses), pytest.raises(TooMuchError):
        api.vector("a", at=SPAN.from_at)
    monkeypatch.setattr(api_module, "ANSWER_LIMIT_BYTES", len(GOOD.body))
    with asking(GOOD) as (api, _, _pauses):
        assert api.vector("a", at=SPAN.from_at)


def test_a_server_that_never_answers_is_asked_for_less() -> None:
    with asking(Said(is_silent=True), timeout_s=0.2) as (api, server, _):
        with pytest.raises(TooMuchError) as told:
            api.samples("{}", SPAN)
        server.closing.set()
    assert "in time" in told.value.error.message


def test_a_server_without_targets_is_no_error() -> None:
    with asking(Said(status=404)) as (api, _, _pauses):
        assert api.targets() == []
    active = {"activeTargets": [{"labels": {"job": "a"}, "scrapeUrl": "http://n1:9400/metrics"}]}
    with asking(success(active)) as (api, _, _pauses):
        (target,) = api.targets()
    assert (target.labels, target.scrape_url) == ({"job": "a"}, "http://n1:9400/metrics")


def test_names_are_asked_for_within_the_period() -> None:
    with asking(success(["up", "a"])) as (api, server, _):
        assert api.names(SPAN) == ["up", "a"]
    method, path, _, _ = server.questions[0]
    assert method == "GET"
    assert path.startswith("/api/v1/label/__name__/values?start=")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://prometheus:9090", "http://prometheus:9090"),
        ("prometheus:9090/", "http://prometheus:9090"),
        ("https://mimir.example/prometheus/", "https://mimir.example/prometheus"),
        ("http://vm:8481/select/0/prometheus", "http://vm:8481/select/0/prometheus"),
        ("http://prometheus:9090/graph", "http://prometheus:9090"),
        ("http://prometheus:9090/api/v1/query", "http://prometheus:9090"),
        ("http://[::1]:9090", "http://[::1]:9090"),
    ],
)
def test_an_address_has_one_spelling(text: str, url: str) -> None:
    assert server_url(text) == url


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no address"),
        ("ftp://a", "no address"),
        ("http://a b", "no address"),
        ("http://a:99999", "bad --url"),
        ("http://ann:secret@a", "carries credentials"),
    ],
)
def test_a_bad_address_is_told(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        server_url(text)
    assert "secret" not in error.value.message


def test_headers_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text("# for the gateway\nAuthorization: Bearer abc\n\nX-Scope-OrgID: team\n")
    assert headers_from(file) == {"Authorization": "Bearer abc", "X-Scope-OrgID": "team"}
    file.write_text("Authorization: Bearer abc\nBearer s3cret\n")
    with pytest.raises(InputError, match="headers:2: not a header") as error:
        headers_from(file)
    assert "s3cret" not in error.value.message + error.value.hint
    with pytest.raises(InputError, match="No such file"):
        headers_from(tmp_path / "absent")


def test_a_span_is_whole_milliseconds() -> None:
    span = Period(SPAN.from_at, SPAN.from_at + timedelta(seconds=37))
    with asking(matrix()) as (api, server, _):
        assert api.samples("{}", span) == []
    assert parse_qs(server.questions[0][3])["query"] == ["{}[37000ms]"]
