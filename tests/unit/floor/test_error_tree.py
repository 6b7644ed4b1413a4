"""Every failure has an exit code of its own, and the drawing at the top of the file is true."""

from __future__ import annotations

import re

import pytest

from steward import errors
from steward.errors import StewardError, WarehouseError
from steward.manual import error_classes


def test_exit_codes_are_distinct_and_not_those_of_shells() -> None:
    codes = [each.exit_code for each in error_classes()]

    assert len(set(codes)) == len(codes)
    assert min(codes) >= 1
    assert max(codes) < 126


def test_the_drawing_names_every_class_with_its_code() -> None:
    drawn = dict(re.findall(r"(\w+Error)\s+(\d+)", errors.__doc__ or ""))

    assert drawn == {each.__name__: str(each.exit_code) for each in error_classes()}


@pytest.mark.parametrize("error", error_classes(), ids=lambda each: each.__name__)
def test_an_error_carries_message_and_hint(error: type[StewardError]) -> None:
    raised = error("the thing is wrong", hint="right it")

    assert (str(raised), raised.message, raised.hint) == (
        "the thing is wrong",
        "the thing is wrong",
        "right it",
    )


def test_whoever_catches_the_warehouse_catches_its_kinds() -> None:
    kinds = {errors.OwnedElsewhereError, errors.NewerSchemaError, errors.UnreachableError}

    assert set(WarehouseError.__subclasses__()) == kinds
