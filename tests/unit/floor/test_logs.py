"""Logs: one line for people, one valid JSON object per line for log stores."""

from __future__ import annotations

import json
import logging

import pytest

from steward import logs

logger = logging.getLogger("collector.loop")


def logged(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    """Return the one JSON line that was logged."""
    (line,) = capsys.readouterr().err.splitlines()
    entry: dict[str, object] = json.loads(line, parse_constant=pytest.fail)
    return entry


def test_json_has_the_fields_of_a_log_store(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logger.warning("target %s is down", "a:9400", extra={"target": "a:9400", "retry_s": 1.5})
    entry = logged(capsys)

    assert str(entry.pop("ts")).endswith("+00:00")
    assert entry == {
        "level": "warning",
        "logger": "collector.loop",
        "message": "target a:9400 is down",
        "target": "a:9400",
        "retry_s": 1.5,
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param(0, 0, id="zero"),
        pytest.param(float("nan"), "nan", id="not a number"),
        pytest.param(float("inf"), "inf", id="infinite"),
        pytest.param("two\nlines", "two\nlines", id="a line break"),
        pytest.param("温度", "温度", id="another script"),
        pytest.param({1}, "{1}", id="what JSON has no word for"),
    ],
)
def test_any_extra_is_one_valid_line(
    capsys: pytest.CaptureFixture[str], value: object, written: object
) -> None:
    logs.configure("info", "json")
    logger.info("seen", extra={"value": value})

    assert logged(capsys)["value"] == written


def test_an_exception_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    try:
        dict[str, int]()["lost"]
    except KeyError:
        logger.exception("failed")

    assert str(logged(capsys)["exception"]).endswith("KeyError: 'lost'")


def test_console_is_one_line_with_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "console")
    logger.error("target is down", extra={"target": "a:9400", "color_message": "\x1b[1m"})

    err = capsys.readouterr().err
    assert err[8:] == " error collector.loop: target is down target=a:9400\n"
    assert err[:8].count(":") == 2


def test_console_puts_the_traceback_below(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "console")
    try:
        dict[str, int]()["lost"]
    except KeyError:
        logger.exception("failed")

    first, *below = capsys.readouterr().err.splitlines()
    assert first.endswith("collector.loop: failed")
    assert below[0].startswith("Traceback")
    assert below[-1] == "KeyError: 'lost'"


@pytest.mark.parametrize(
    ("level", "heard"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_the_level_is_the_least_severe_heard(
    capsys: pytest.CaptureFixture[str], level: str, heard: list[str]
) -> None:
    logs.configure(level, "console")  # type: ignore[arg-type]  # one of the four
    for each in ("debug", "info", "warning", "error"):
        getattr(logger, each)("said")

    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == heard


def test_libraries_log_requests_at_debug_only(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "console")
    logging.getLogger("httpx").info("GET")
    assert capsys.readouterr().err == ""

    logs.configure("debug", "console")
    logging.getLogger("httpx").info("GET")
    assert "httpx: GET" in capsys.readouterr().err


def test_configuring_twice_logs_once(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logs.configure("info", "console")
    logger.info("said")

    assert len(capsys.readouterr().err.splitlines()) == 1
