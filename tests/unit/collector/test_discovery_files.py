"""Files of targets: read when they change, kept when they break."""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from collector.discovery import ScrapeTarget
from collector.discovery_files import FileDiscovery

TICKS_NS = itertools.count(10**18, 10**9)


def write(path: Path, *addresses: str, text: str | None = None) -> Path:
    """Write a file of targets; each has its own time of change, without waiting for it."""
    path.write_text(text if text is not None else json.dumps([{"targets": list(addresses)}]))
    at_ns = next(TICKS_NS)
    os.utime(path, ns=(at_ns, at_ns))
    return path


def urls(targets: tuple[ScrapeTarget, ...]) -> list[str]:
    return [one.url.removeprefix("http://").removesuffix("/metrics") for one in targets]


def test_all_matching_files_count_each_target_once(tmp_path: Path) -> None:
    write(tmp_path / "a.json", "h1:1", "h2:2")
    write(tmp_path / "b.json", "h2:2", "h3:3")
    write(tmp_path / "c.txt", "h4:4")
    found = FileDiscovery([str(tmp_path / "*.json"), str(tmp_path / "a.json")])
    assert urls(found.look()) == ["h1:1", "h2:2", "h3:3"]
    assert [(one.target_count, one.error) for one in found.states()] == [(2, None), (2, None)]


@pytest.mark.parametrize("name", ["t.yml", "t.yaml"])
def test_yaml_is_read_too(tmp_path: Path, name: str) -> None:
    text = "- targets: ['h1:1']\n  labels:\n    node: n1\n- targets: [h2:2]\n"
    path = write(tmp_path / name, text=text)
    found = FileDiscovery([str(path)]).look()
    assert [(one.url, one.node) for one in found] == [
        ("http://h1:1/metrics", "n1"),
        ("http://h2:2/metrics", None),
    ]


def test_folders_within_folders_are_matched(tmp_path: Path) -> None:
    (tmp_path / "x/y").mkdir(parents=True)
    write(tmp_path / "x/y/t.json", "h1:1")
    assert urls(FileDiscovery([str(tmp_path / "**/*.json")]).look()) == ["h1:1"]


def test_changed_file_is_read_again_an_unchanged_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.json", "h1:1")
    found = FileDiscovery([str(path)])
    assert urls(found.look()) == ["h1:1"]
    reads: list[Path] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda one: (reads.append(one), read_bytes(one))[1])
    assert (urls(found.look()), reads) == (["h1:1"], [])
    write(path, "h2:2")
    assert (urls(found.look()), reads) == (["h2:2"], [path])


def test_file_moved_into_place_is_read_though_size_and_time_are_the_same(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", "h1:1")
    found = FileDiscovery([str(path)])
    found.look()
    other = tmp_path / "new"
    other.write_text(path.read_text().replace("h1:1", "h2:2"))
    status = path.stat()
    os.utime(other, ns=(status.st_mtime_ns, status.st_mtime_ns))
    other.replace(path)
    assert urls(found.look()) == ["h2:2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "is no JSON", id="empty"),
        pytest.param('[{"targets": ["h2', "is no JSON", id="half written"),
        pytest.param("{}", "not a list of groups", id="another shape"),
        pytest.param('[{"targets": ["h 2"]}]', "bad target", id="bad address"),
        pytest.param("[" * 100_000, "is no JSON", id="nested without end"),
    ],
)
def test_broken_file_keeps_its_last_good_targets_and_says_so(
    tmp_path: Path, text: str, words: str
) -> None:
    path = write(tmp_path / "t.json", "h1:1")
    found = FileDiscovery([str(path)])
    found.look()
    write(path, text=text)
    for _ in range(2):
        assert urls(found.look()) == ["h1:1"]
        (state,) = found.states()
        assert (state.source, state.target_count) == (str(path), 1)
        assert state.error is not None
        assert words in state.error
        assert str(path) in state.error
        assert state.hint
    write(path, "h3:3")
    assert urls(found.look()) == ["h3:3"]
    assert found.states()[0].error is None


def test_file_that_was_never_good_has_no_targets(tmp_path: Path) -> None:
    write(tmp_path / "t.json", text="oops")
    write(tmp_path / "u.yml", text="a: [")
    found = FileDiscovery([str(tmp_path / "*")])
    assert found.look() == ()
    assert [one.error is not None for one in found.states()] == [True, True]


def test_empty_list_has_no_targets_and_no_fault(tmp_path: Path) -> None:
    found = FileDiscovery([str(write(tmp_path / "t.json", text="[]"))])
    assert found.look() == ()
    assert found.states()[0].error is None


def test_file_that_is_gone_takes_its_targets_along(tmp_path: Path) -> None:
    path = write(tmp_path / "t.json", "h1:1")
    found = FileDiscovery([str(path)])
    found.look()
    path.unlink()
    assert found.look() == ()
    (state,) = found.states()
    assert state.error == f"no file matches {path}"


def test_file_of_another_ending_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", "h1:1")
    found = FileDiscovery([str(path)])
    assert found.look() == ()
    assert "neither .json nor .yml" in (found.states()[0].error or "")


def test_folder_that_matches_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "t.json").mkdir()
    found = FileDiscovery([str(tmp_path / "*.json")])
    assert found.look() == ()


def test_new_file_is_found(tmp_path: Path) -> None:
    found = FileDiscovery([str(tmp_path / "*.json")])
    assert found.look() == ()
    write(tmp_path / "t.json", "h1:1")
    assert urls(found.look()) == ["h1:1"]


def test_file_that_is_no_list_for_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "t.json", "h1:1")
    monkeypatch.setattr("collector.discovery_files.FILE_LIMIT_BYTES", path.stat().st_size - 1)
    found = FileDiscovery([str(path)])
    assert found.look() == ()
    assert "too large" in (found.states()[0].error or "")
    monkeypatch.setattr("collector.discovery_files.FILE_LIMIT_BYTES", path.stat().st_size)
    assert urls(FileDiscovery([str(path)]).look()) == ["h1:1"]


def test_yaml_without_its_library_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    found = FileDiscovery([str(write(tmp_path / "t.yml", text="[]"))])
    assert found.look() == ()
    (state,) = found.states()
    assert "the library for that is not installed" in (state.error or "")
    assert "gpu-steward[kubernetes]" in (state.hint or "")


def test_link_to_nowhere_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "t.json").symlink_to(tmp_path / "gone")
    assert FileDiscovery([str(tmp_path / "*.json")]).look() == ()


def test_file_that_cannot_be_read_keeps_its_last_good_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.json", "h1:1")
    found = FileDiscovery([str(path)])
    found.look()
    write(path, "h2:2")

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert urls(found.look()) == ["h1:1"]
    assert found.states()[0].error == f"cannot read {path}: Permission denied"


def test_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.json").mkdir()
    found = FileDiscovery([str(tmp_path / "*.json")])
    assert found.look() == ()
    assert [state.error for state in found.states()] == [f"no file matches {tmp_path / '*.json'}"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("- targets: [", id="half written"),
        pytest.param("[" * 2_000, id="nested without end"),
        pytest.param("- targets: [2026-13-45]", id="a date that is none"),
        pytest.param("!!int x", id="a number that is none"),
        pytest.param("!!bool x", id="a flag that is none"),
        pytest.param("!!timestamp x", id="an instant that is none"),
        pytest.param('!!python/object/apply:os.system ["true"]', id="a program"),
        pytest.param("? {a: b}\n: c", id="a key that is no text"),
        pytest.param("-\ttargets:", id="a tab"),
        pytest.param("- &a\n  targets: [*a]", id="a circle"),
    ],
)
def test_broken_yaml_keeps_the_last_good_targets_and_says_so(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "t.yml", text="- targets: ['h1:1']")
    found = FileDiscovery([str(path)])
    found.look()
    write(path, text=text)
    assert urls(found.look()) == ["h1:1"]
    (state,) = found.states()
    assert str(path) in str(state.error)
