"""Screens over stored rows: full, empty and partly unknown, in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.serve import APP
from sql.warehouse import open_embedded
from tests.support.report_rows import store_fleet

TIMEOUT_S = 60


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    st.cache_data.clear()
    yield
    st.cache_data.clear()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("full"))


def stored(folder: Path, *, has_unknown: bool = False) -> Path:
    with closing(open_embedded(folder)) as warehouse:
        store_fleet(warehouse, has_unknown=has_unknown)
    return folder


def opened(monkeypatch: pytest.MonkeyPatch, folder: Path, **query: str) -> AppTest:
    """Return the app after its first run over this folder."""
    monkeypatch.setenv("STEWARD_DATA_DIR", str(folder))
    app = AppTest.from_file(str(APP), default_timeout=TIMEOUT_S)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def metrics(app: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def test_overview_of_a_full_day(monkeypatch: pytest.MonkeyPatch, full: Path) -> None:
    app = opened(monkeypatch, full)
    assert not app.exception
    assert metrics(app) == {
        "Capacity": "96.0 GPU-h",
        "Apparent utilisation": "47.5 %",
        "Effective utilisation": "29.6 %",
        "Held idle": "24 GPU-h",
        "Queue wait p90": "13 min 36 s",
        "Fragmented of idle": "0 %",
    }
    assert [metric.delta for metric in app.metric][1] == "Coverage 100.0 %"
    assert "2026-05-01 00:00" in app.caption[0].value
    tenants = next(frame.value for frame in app.dataframe if "tenant_id" in frame.value.columns)
    assert set(tenants["tenant_id"]) == {"vision", "语音"}
    assert any("语音 held 24.0 GPU" in text.value for text in app.markdown)


def test_every_card_explains_itself(monkeypatch: pytest.MonkeyPatch, full: Path) -> None:
    app = opened(monkeypatch, full)
    assert [metric.label for metric in app.metric if len(metric.help) < 20] == []


def test_an_empty_warehouse_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = opened(monkeypatch, tmp_path / "empty")
    assert not app.exception
    assert app.info[0].value == "The warehouse holds no rows yet."
    assert "steward import simulated" in app.code[0].value
    assert not app.metric


def test_what_is_partly_unknown_shows_its_coverage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = opened(monkeypatch, stored(tmp_path, has_unknown=True))
    assert not app.exception
    assert metrics(app)["Effective utilisation"] == "\u2013"
    by_label = {metric.label: metric.delta for metric in app.metric}
    assert by_label["Effective utilisation"] == "Coverage 0 %"


def test_the_period_in_the_address_narrows_the_figures(
    monkeypatch: pytest.MonkeyPatch, full: Path
) -> None:
    app = opened(monkeypatch, full, last="12h")
    assert not app.exception
    assert metrics(app)["Capacity"] == "48 GPU-h"


def test_a_chosen_period_goes_into_the_address(monkeypatch: pytest.MonkeyPatch, full: Path) -> None:
    app = opened(monkeypatch, full)
    app.button_group(key="chosen_last").set_value("24h").run()
    assert not app.exception
    assert app.query_params["last"] in ("24h", ["24h"])


def test_an_empty_period_renders(monkeypatch: pytest.MonkeyPatch, full: Path) -> None:
    ends = {"from": "2026-06-01T00:00:00Z", "until": "2026-06-02T00:00:00Z"}
    app = opened(monkeypatch, full, **ends)
    assert not app.exception


@pytest.mark.parametrize("last", ["yesterday", "0d"])
def test_a_wrong_address_is_explained(
    monkeypatch: pytest.MonkeyPatch, full: Path, last: str
) -> None:
    app = opened(monkeypatch, full, last=last)
    assert not app.exception
    assert "is not a length of time" in app.error[0].value


def test_the_screen_speaks_chinese(monkeypatch: pytest.MonkeyPatch, full: Path) -> None:
    app = opened(monkeypatch, full, lang="zh")
    assert not app.exception
    assert "有效利用率" in metrics(app)
    assert "按租户" in [heading.value for heading in app.subheader]


@pytest.mark.parametrize("name", ["health", "inventory", "utilization", "queue", "fragmentation"])
def test_every_report_has_a_screen(monkeypatch: pytest.MonkeyPatch, full: Path, name: str) -> None:
    app = opened(monkeypatch, full)
    app.switch_page("screens/report.py").run()
    app.selectbox(key="report").set_value(name).run()
    assert not app.exception
    assert len(app.metric) > 0
    assert app.dataframe


def test_new_rows_are_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    app = opened(monkeypatch, tmp_path)
    assert app.info
    st.cache_data.clear()
    stored(tmp_path)
    app.run()
    assert not app.exception
    assert metrics(app)["Capacity"] == "96.0 GPU-h"
