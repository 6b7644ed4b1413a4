"""Every numbered report of the field, as a test named after it.

The numbers are those of the list of bug reports that a collector must survive.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parents[1]
NUMBERS: Final = (
    *(1, 2, 3, 4, 5, 6, 8, 10, 12, 13, 14, 16, 17, 18, 19, 20, 21, 23, 24, 25, 27, 28, 29),
    *(31, 32, 33, 34, 35, 36, 39, 40, 41, 44, 45),
)
_NAME: Final = re.compile(r"^def test_fault_(?P<number>[0-9]{2})_\w+\(", re.MULTILINE)
FOUND: Final = {
    int(found["number"])
    for path in TESTS.rglob("test_*.py")
    for found in _NAME.finditer(path.read_text("utf-8"))
}


@pytest.mark.parametrize("number", NUMBERS)
def test_report_has_a_test_of_its_number(number: int) -> None:
    assert number in FOUND


def test_every_numbered_test_belongs_to_a_report() -> None:
    assert set(NUMBERS) >= FOUND
