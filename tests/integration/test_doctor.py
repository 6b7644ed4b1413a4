"""``steward collect doctor`` on real servers: exporters of all kinds, lists, a warehouse."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from collector.cli import COLLECT, DOCTOR
from collector.doctor.diagnosis import Diagnosis
from collector.doctor.examine import examine
from collector.doctor.finding import Finding
from collector.doctor.report import print_diagnosis
from sql.client import connect
from steward.clock import SystemClock
from steward.command import Context
from steward.errors import UsageError
from steward.parser import parse
from steward.settings import CollectSettings, KubernetesSettings, Settings, WarehouseSettings
from tests.support.collector_process import environment, steward
from tests.support.doctor_views import answer
from tests.support.exporter_server import (
    REQUEST_NUMBER,
    Answer,
    ExporterServer,
    closed_port,
    exporter_server,
    exposition,
    redirect,
)
from tests.support.warehouse_server import owner

pytestmark = pytest.mark.slow
WHOLE = "\n".join(answer()) + "\n"
TOKENS = {
    "STEWARD_WAREHOUSE_WRITER_TOKENS": "writer",
    "STEWARD_WAREHOUSE_READER_TOKENS": "reader",
    "STEWARD_WAREHOUSE_ADMIN_TOKENS": "admin",
}


@pytest.fixture(scope="module")
def server() -> Iterator[ExporterServer]:
    with exporter_server({"/good": exposition(WHOLE)}) as running:
        yield running


def doctor(
    data_dir: Path,
    *urls: str,
    collect: CollectSettings | None = None,
    warehouse: WarehouseSettings | None = None,
    is_patient: bool = False,
) -> Diagnosis:
    """Examine in this process."""
    settings = Settings(
        data_dir=data_dir,
        collect=collect or CollectSettings(timeout_s=5.0),
        warehouse=warehouse or WarehouseSettings(),
    )
    return asyncio.run(examine(settings, urls=urls, clock=SystemClock(), is_patient=is_patient))


def of(found: Diagnosis, subject: str) -> dict[str, Finding]:
    """Return the findings of one subject by code."""
    return {str(one.code): one for one in found.findings if one.subject == subject}


def test_a_complete_target_and_a_new_installation(server: ExporterServer, tmp_path: Path) -> None:
    found = doctor(tmp_path / "new", server.url("/good"))
    assert of(found, server.url("/good")).keys() == {"target_complete"}
    assert (found.target_count, found.device_count, found.exit_code) == (1, 1, 0)
    assert found.conclusion.startswith("nothing is missing: 1 target with 1 device (")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01", "node_from_address target_complete"),
        ("02", "no_holder_told node_from_address target_complete"),
        ("04", "no_holder_told node_from_address target_complete"),
        ("05", "no_holder_told node_from_address target_complete values_repeated"),
        ("05b", "memory_absent no_holder_told node_from_address"),
        ("06", "names_unknown profiling_absent utilisation_absent"),
        (
            "07",
            (
                "names_unknown node_from_address pod_labels_absent profiling_absent "
                "utilisation_absent uuid_absent"
            ),
        ),
        (
            "09",
            (
                "memory_absent names_unknown no_holder_told node_from_address power_absent "
                "profiling_absent utilisation_absent values_old"
            ),
        ),
        ("11", "model_absent node_from_address power_absent profiling_absent values_repeated"),
        ("13", "memory_absent power_absent profiling_absent utilisation_absent uuid_absent"),
        (
            "14",
            (
                "devices_shared model_absent profiling_absent utilisation_absent "
                "uuid_absent values_repeated"
            ),
        ),
        (
            "14b",
            (
                "lines_dropped memory_absent model_absent node_from_address pod_labels_absent "
                "power_absent profiling_absent uuid_absent"
            ),
        ),
    ],
)
def test_recorded_texts(
    server: ExporterServer, tmp_path: Path, test_data: Path, name: str, expected: str
) -> None:
    (text,) = (test_data / "exposition").glob(f"{name}_*.prom")
    server.answers[f"/{name}"] = Answer(body=text.read_bytes())
    found = doctor(tmp_path, server.url(f"/{name}"))
    assert of(found, server.url(f"/{name}")).keys() == set(expected.split())


@pytest.mark.parametrize(
    ("path", "served", "code"),
    [
        ("/moved", redirect("/good"), "redirect"),
        ("/missing", Answer(status="404 Not Found"), "http_status"),
        ("/html", Answer(body=b"<html><body>hello</body></html>"), "not_exposition"),
        ("/prose", Answer(body=b"this is no exposition at all\n"), "not_exposition"),
        ("/empty", exposition("# nothing\n"), "empty"),
        ("/silent", Answer(is_silent=True), "timeout"),
        ("/dripping", Answer(body=b"x", drip_s=0.1), "timeout"),
        ("/endless", Answer(is_endless=True), "too_large"),
        (
            "/strange",
            Answer(body=b"x", headers=(("content-encoding", "br"),)),
            "encoding",
        ),
        ("/other", exposition("go_goroutines 5\n"), "no_devices"),
    ],
)
def test_targets_that_cannot_be_read(
    server: ExporterServer, tmp_path: Path, path: str, served: Answer, code: str
) -> None:
    server.answers[path] = served
    url = server.url(path)
    chosen = CollectSettings(timeout_s=2.0, body_limit_bytes=1_000_000)
    found = doctor(tmp_path, url, server.url("/good"), collect=chosen)
    (one,) = of(found, url).values()
    assert (str(one.severity), one.code, bool(one.remedy)) == ("fault", code, True)
    assert of(found, server.url("/good")).keys() == {"target_complete"}
    assert found.exit_code == 5


def test_a_port_on_which_nothing_listens(tmp_path: Path) -> None:
    with closed_port() as port:
        found = doctor(tmp_path, f"http://127.0.0.1:{port}/metrics")
    assert found.conclusion.startswith("1 fault: 1 of 1 targets cannot be read")


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        pytest.param(timedelta(hours=-2.5), "2 h behind", id="behind"),
        pytest.param(timedelta(0), None, id="right"),
        pytest.param(timedelta(hours=2.5), "2 h ahead of", id="ahead"),
    ],
)
def test_the_clock_of_a_target(
    server: ExporterServer, tmp_path: Path, ahead: timedelta, words: str | None
) -> None:
    date = ("date", format_datetime(datetime.now(UTC) + ahead, usegmt=True))
    server.answers["/clock"] = Answer(body=WHOLE.encode(), headers=(date,))
    found = of(doctor(tmp_path, server.url("/clock")), server.url("/clock"))
    assert ("clock_skew" in found) is (words is not None)
    if words is not None:
        assert f"at least {words} this machine's" in found["clock_skew"].message


@pytest.mark.parametrize("date", ["", "yesterday", "Mon, 99 Xxx 2026 00:00:00 GMT", "9" * 400])
def test_a_date_that_is_none_is_no_clock(server: ExporterServer, tmp_path: Path, date: str) -> None:
    server.answers["/date"] = Answer(body=WHOLE.encode(), headers=(("date", date),))
    found = doctor(tmp_path, server.url("/date"))
    assert of(found, server.url("/date")).keys() == {"target_complete"}


def test_values_that_stand_still_and_values_that_move(
    server: ExporterServer, tmp_path: Path
) -> None:
    server.answers["/still"] = exposition(WHOLE)
    server.answers["/moving"] = exposition(WHOLE.replace("300.5", f"30{REQUEST_NUMBER.decode()}.5"))
    chosen = CollectSettings(interval_s=0.2)
    urls = server.url("/still"), server.url("/moving")
    found = doctor(tmp_path, *urls, collect=chosen, is_patient=True)
    assert "values_cached" in of(found, urls[0])
    assert "values_cached" not in of(found, urls[1])
    assert server.requests["/still"] == server.requests["/moving"] == 2


def test_two_exporters_of_one_node(server: ExporterServer, tmp_path: Path) -> None:
    server.answers["/again"] = exposition(WHOLE)
    found = doctor(tmp_path, server.url("/good"), server.url("/again"))
    first, second = sorted([server.url("/good"), server.url("/again")])
    assert second in of(found, first)["devices_doubled"].message
    assert (found.target_count, found.device_count) == (2, 1)


def test_lists_of_targets(server: ExporterServer, tmp_path: Path) -> None:
    listed = [{"targets": [server.url("/good")], "labels": {"node": "n7"}}]
    good, broken = tmp_path / "good.json", tmp_path / "broken.json"
    good.write_text(json.dumps(listed), encoding="utf-8")
    broken.write_text("{", encoding="utf-8")
    server.answers["/sd"] = Answer(body=json.dumps(listed).encode())
    server.answers["/sd-broken"] = Answer(status="500 Oops")
    none = str(tmp_path / "none-*.json")
    chosen = CollectSettings(
        file_sd=(str(good), str(broken), none),
        http_sd=(server.url("/sd"), server.url("/sd-broken")),
    )
    found = doctor(tmp_path, collect=chosen)
    unlisted = {one.subject for one in found.findings if one.code == "targets_unlisted"}
    assert unlisted == {str(broken), none, server.url("/sd-broken")}
    assert found.target_count == 1
    assert of(found, server.url("/good")).keys() == {"target_complete"}
    assert found.conclusion.startswith("1 fault: lists of targets unread")


def test_nothing_to_read_at_all(tmp_path: Path) -> None:
    found = doctor(tmp_path)
    assert "no_targets" in of(found, "collect.targets")
    assert found.exit_code == 5


def test_a_cluster_that_cannot_be_found(server: ExporterServer, tmp_path: Path) -> None:
    nowhere = KubernetesSettings(access="kubeconfig", kubeconfig=tmp_path / "nowhere")
    settings = Settings(data_dir=tmp_path, kubernetes=nowhere)
    urls = (server.url("/good"),)
    found = asyncio.run(examine(settings, urls=urls, clock=SystemClock(), is_patient=False))
    (unread,) = [one for one in found.findings if one.code == "cluster_unreadable"]
    assert str(tmp_path / "nowhere") in unread.message
    assert of(found, server.url("/good")).keys() == {"target_complete"}


@pytest.fixture(scope="module")
def warehouse_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with owner(tmp_path_factory.mktemp("warehouse"), TOKENS) as running:
        yield running.url


@pytest.mark.parametrize(
    ("token", "severity", "code"),
    [
        pytest.param("admin", "fine", "warehouse_ready", id="may do everything"),
        pytest.param("writer", "note", "warehouse_unchecked", id="may append only"),
        pytest.param("reader", "fault", "warehouse_refuses", id="may not append"),
        pytest.param("stranger", "fault", "warehouse_refuses", id="unknown"),
        pytest.param(None, "fault", "warehouse_refuses", id="none"),
    ],
)
def test_the_token_for_the_warehouse(
    tmp_path: Path, warehouse_url: str, token: str | None, severity: str, code: str
) -> None:
    chosen = WarehouseSettings(url=warehouse_url, token=token)
    found = of(doctor(tmp_path, warehouse=chosen), warehouse_url)
    assert [(str(one.severity), one.code) for one in found.values()] == [(severity, code)]


def test_a_warehouse_that_is_none_and_one_that_is_away(
    server: ExporterServer, tmp_path: Path
) -> None:
    stranger = WarehouseSettings(url=server.url("").rstrip("/"))
    assert "warehouse_away" in of(doctor(tmp_path, warehouse=stranger), stranger.url or "")
    with closed_port() as port:
        away = WarehouseSettings(url=f"http://127.0.0.1:{port}")
        found = of(doctor(tmp_path, warehouse=away), away.url or "")
    assert found["warehouse_away"].message.startswith("no answer from the warehouse")


def test_the_owner_of_the_data_folder_is_asked_and_nothing_is_stored(tmp_path: Path) -> None:
    with owner(tmp_path) as running:
        found = of(doctor(tmp_path), f"the owner of {tmp_path}")
        assert found.keys() == {"warehouse_ready"}
        with closing(connect(running.url)) as asked:
            rows = asked.sql("select count(*) as n from append_batch").to_pylist()
        assert rows == [{"n": 0}]


def test_the_command_prints_a_table_and_ends_with_5(server: ExporterServer, tmp_path: Path) -> None:
    with closed_port() as port:
        down = f"http://127.0.0.1:{port}/metrics"
        done = steward(
            *("collect", "doctor", "--scrape", server.url("/good"), down),
            *("--data-dir", str(tmp_path / "new")),
            cwd=tmp_path,
        )
    assert (done.returncode, done.stderr) == (5, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("FAULT - nothing is read or kept there")
    assert lines[2].split("  ")[0] == down
    assert lines[-1].startswith("1 fault: 1 of 2 targets cannot be read")
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_json_and_ends_with_0(server: ExporterServer, tmp_path: Path) -> None:
    done = steward(
        *("collect", "doctor", "--format", "json", "--scrape", server.url("/good")),
        *("--data-dir", str(tmp_path / "new")),
        cwd=tmp_path,
    )
    content = json.loads(done.stdout)
    assert (done.returncode, done.stderr, content["exit_code"]) == (0, "", 0)
    assert [one["code"] for one in content["findings"] if one["severity"] == "fine"] == [
        "target_complete"
    ]


def test_an_exporter_that_would_move_the_cursor(
    server: ExporterServer, tmp_path: Path, *, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = WHOLE + 'x{y="\x1b[2J"} \x1b]0;owned\x07\n'
    server.answers["/hostile"] = exposition(hostile)
    print_diagnosis(doctor(tmp_path, server.url("/hostile")), form="table")
    out = capsys.readouterr().out
    assert "1 line cannot be read" in out
    assert "\x1b" not in out


def test_a_cluster_without_the_part_for_it(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['kubernetes'] = None\n"
        "from steward.main import main\n"
        "sys.exit(main(['collect', 'doctor', '--kubernetes', '--format', 'json']))"
    )
    own = {"STEWARD_DATA_DIR": str(tmp_path / "new")}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment() | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (5, "")
    (missing,) = [
        one for one in json.loads(done.stdout)["findings"] if one["code"] == "part_missing"
    ]
    assert missing["message"].startswith("the cluster cannot be read without kubernetes,")
    assert missing["remedy"] == "install gpu-steward[kubernetes]"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scrape", "n1:9400", DOCTOR], "doctor stands among the addresses of --scrape"),
        ([DOCTOR, "--once"], "--once does not go with doctor"),
        ([DOCTOR, "--metrics-port", "0"], "--metrics-port does not go with doctor"),
        (["--format", "json"], "--format only goes with doctor"),
        (["--patient"], "--patient only goes with doctor"),
        ([DOCTOR, "--scrape", "ftp://x"], "bad target 'ftp://x'"),
    ],
)
def test_words_that_do_not_go_together(tmp_path: Path, words: list[str], message: str) -> None:
    args = parse(COLLECT, words)
    assert args is not None
    context = Context(settings=Settings(data_dir=tmp_path), clock=SystemClock())
    with pytest.raises(UsageError, match=message):
        COLLECT.run(args, context)
    assert list(tmp_path.iterdir()) == []
