"""The commands that installed rooms offer, found by entry point and loaded one by one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires

from steward.command import Command
from steward.errors import MissingPartError, UsageError

DISTRIBUTION = "gpu-steward"
GROUP = "steward.commands"
PACKAGE_OF_MODULE: Mapping[str, str] = {"pynvml": "nvidia_ml_py"}
"""Modules of optional parts that are not named after the package that brings them."""


@cache
def offers() -> Mapping[str, EntryPoint]:
    """Return each command's entry point by name, unloaded, in order of name."""
    found = {each.name: each for each in entry_points(group=GROUP)}
    return dict(sorted(found.items()))


def load_command(name: str) -> Command:
    """Return the command, importing its module and no other command's.

    Raises:
        UsageError: no such command.
        MissingPartError: its module needs a package that is not installed.
    """
    if name not in offers():
        close = difflib.get_close_matches(name, list(offers()), n=1)
        raise UsageError(
            f"there is no command {name!r}",
            hint=f"did you mean `steward {close[0]}`?" if close else "see `steward --help`",
        )
    try:
        command = offers()[name].load()
    except ModuleNotFoundError as error:
        raise missing_part(error) from error
    if not isinstance(command, Command):
        raise TypeError(f"{offers()[name].value} is not a Command")
    return command


def missing_part(error: ModuleNotFoundError) -> MissingPartError:
    """Return the error that names the optional part holding the module that was not found."""
    module = (error.name or str(error)).partition(".")[0]
    package = PACKAGE_OF_MODULE.get(module, module.lower())
    extra = extras_by_package().get(package)
    if extra is None:
        return MissingPartError(
            f"the Python module {error.name or error} is not installed",
            hint=f"install {DISTRIBUTION} again: it needs that module",
        )
    return MissingPartError(
        f"the optional part {extra!r} is not installed (no package {package})",
        hint=f"install it with `pip install '{DISTRIBUTION}[{extra}]'`",
    )


@cache
def extras_by_package() -> Mapping[str, str]:
    """Return, for each package that an extra brings, the name of that extra."""
    try:
        lines = requires(DISTRIBUTION) or []
    except PackageNotFoundError:
        return {}
    pattern = re.compile(r"(?P<package>[\w.-]+).*;\s*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"]")
    found = [match for line in lines if (match := pattern.match(line))]
    return {
        match["package"].lower().replace("-", "_"): match["extra"]
        for match in found
        if match["package"] != DISTRIBUTION
    }
