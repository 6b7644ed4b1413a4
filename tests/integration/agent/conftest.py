"""NVIDIA's library without a GPU, compiled once for all tests of the node agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nvml_stub import Stub, build, load


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compiled library."""
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def stub(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Stub:
    """Return the library, loaded into this process."""
    return load(library, tmp_path_factory.mktemp("scene") / "scene")
