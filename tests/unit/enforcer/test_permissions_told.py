"""At its start the enforcer says, kind by kind, what it can see and do."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

import pytest

from enforcer.controller import Controller, Sight
from enforcer.gateway.memory import Call, MemoryGateway
from enforcer.run import tell_permissions
from steward.errors import ClusterError
from steward.ports import Writer
from steward.settings import EnforceSettings
from tests.support.enforced_cluster import enforced

KINDS = EnforceSettings(kinds=("Job",))


def told(folder: Path, gateway: MemoryGateway, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what is logged, with its level; neither facts nor verdicts are asked for."""
    with enforced(folder) as world, caplog.at_level(logging.INFO, logger="enforcer.run"):
        world.gateway = gateway
        controller = Controller(
            sight=cast("Sight", None), hands=world.hands(), writer=cast("Writer", None)
        )
        tell_permissions(controller, KINDS)
    return [f"{one.levelname} {one.getMessage()}" for one in caplog.records]


def test_what_can_be_done_is_told_for_each_need(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = told(tmp_path, MemoryGateway(), caplog)
    assert any(line.startswith("INFO batch/v1 Job: can act") for line in lines)
    assert not any("WARNING" in line for line in lines)


def test_what_is_missing_is_a_warning_that_names_the_verb(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = told(tmp_path, MemoryGateway(denied=[("patch", "Job")]), caplog)
    assert any(line.startswith("WARNING batch/v1 Job: cannot act (patch missing") for line in lines)


def test_a_server_that_does_not_answer_is_told_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_call: Call) -> None:
        raise ClusterError("no answer", hint="try again")

    (line,) = told(tmp_path, MemoryGateway(on_call=broken), caplog)
    assert line == "WARNING permissions are not known yet: no answer (try again)"
