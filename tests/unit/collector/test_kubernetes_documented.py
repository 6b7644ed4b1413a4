"""What an operator copies from the documentation is what the code needs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from collector.sources.kubernetes.api_error import ApiFault
from collector.sources.kubernetes.exporter_objects import (
    endpoints_of_exporters,
    slices_of_exporters,
)
from collector.sources.kubernetes.permissions import cluster_role
from collector.sources.kubernetes.resources import RESOURCES

PAGE: Final = Path(__file__).parents[3] / "docs/kubernetes.md"
OF_EXPORTERS: Final = (
    slices_of_exporters(label_selector="", namespace=None),
    endpoints_of_exporters(label_selector="", namespace=None),
)


def test_role_in_the_documentation_permits_all_that_is_read() -> None:
    role = cluster_role((*RESOURCES, *OF_EXPORTERS), name="steward-collector")
    assert f"```yaml\n{role}```\n" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", [one for one in ApiFault if one is not ApiFault.CLOSED])
def test_word_for_a_failure_is_explained(fault: ApiFault) -> None:
    assert f"`{fault}`" in PAGE.read_text(encoding="utf-8")
