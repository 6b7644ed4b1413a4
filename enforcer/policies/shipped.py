"""The policy that comes with the product: it observes, and waits for a person's leave."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from enforcer.policies.matching import DEFAULT_NAME
from enforcer.policies.model import Policy
from enforcer.policies.reading import read_policy

_FILE: Final = f"{DEFAULT_NAME}.yaml"


@cache
def default_text() -> str:
    """Return the shipped policy as it is written."""
    return files("enforcer.policies").joinpath(_FILE).read_text(encoding="utf-8")


@cache
def default_policy() -> Policy:
    """Return the shipped policy, version 0: it holds until a version of its name is stored."""
    return read_policy(default_text(), name=_FILE)
