"""What a room offers to the front door: one command, loaded only when it is called or listed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from steward.clock import Clock
from steward.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every command is given by the front door."""

    settings: Settings
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One ``steward NAME``.

    Its module must import cheaply (standard library and floor only): the heavy imports belong
    inside ``run``, so that ``steward --help`` stays quick.
    """

    name: str
    summary: str
    """One line for ``steward --help``: imperative, no full stop."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Context], int]
    """Do it; return the exit code. Failures are raised as StewardError."""
    needs_settings: bool = True
    """False for a command that must work with faulty settings: it is given the defaults."""
