"""The one way from file, environment and flags to settings: every fault is reported at once."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import get_type_hints

from steward.errors import SettingsError
from steward.settings.fields import ENVIRONMENT_PREFIX, Setting, all_settings
from steward.settings.model import Settings, default_data_dir
from steward.settings.values import WrongValueError, from_text, from_toml

CONFIG_VARIABLE = "STEWARD_CONFIG"
OTHER_VARIABLES: Mapping[str, str] = {
    CONFIG_VARIABLE: "path of the TOML file; `--config` wins over it",
    "STEWARD_TEST_DATA": "folder of recorded inputs, read by the tests only",
    "STEWARD_SOAK_S": "seconds that the comparison with a real server runs, read by the tests only",
}
"""Variables with our prefix that are not settings, with their meaning."""
SERVICE_LINK = re.compile(r"STEWARD_(?:\w+_)?(?:SERVICE_(?:HOST|PORT\w*)|PORT_\d+_(?:TCP|UDP)\w*)")
"""What Kubernetes puts into each pod for a service named steward…; none of it is ours."""
WHOLE_NAMED_SECTIONS = ("log",)
"""Sections whose flags every command has; a command's own flags need no section: ``--port``."""
SECTIONS: Mapping[str, type] = {
    name: hint
    for name, hint in get_type_hints(Settings).items()
    if isinstance(hint, type) and is_dataclass(hint)
}
"""The settings' sections by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Settings together with where each was said."""

    settings: Settings
    origins: Mapping[str, str]
    """By setting path: ``default``, ``FILE: key``, ``$VARIABLE`` or ``--flag``."""
    file: Path | None
    """The TOML file that was read; None where there is none."""


@dataclass(slots=True)
class _Reading:
    """Values, origins and faults, as the sources are read one after the other."""

    values: dict[str, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def take(self, setting: Setting, value: object, *, origin: str) -> None:
        self.values[setting.path] = value
        self.origins[setting.path] = origin


def load(
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings in force; see ``resolve``."""
    return resolve(config=config, environ=environ, flags=flags).settings


def resolve(
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Resolved:
    """Return the settings in force and where each was said.

    Args:
        config: the TOML file named by ``--config``.
        environ: the environment; None means this process's own.
        flags: what flags state, as text by setting path (``data_dir``, ``log.level``).

    Raises:
        SettingsError: one or more faults, all of them listed.
    """
    variables = os.environ if environ is None else environ
    reading = _Reading()
    file = find_file(config, variables)
    if file is not None:
        _read_file(reading, file)
    _read_environment(reading, variables)
    _read_flags(reading, flags or {})
    if reading.faults:
        raise _settings_error(reading.faults)
    reading.values.setdefault("data_dir", default_data_dir(variables))
    origins = {each.path: reading.origins.get(each.path, "default") for each in all_settings()}
    return Resolved(settings=_assemble(reading.values), origins=origins, file=file)


def find_file(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the file to read: ``--config``, ``$STEWARD_CONFIG``, or the user's own if present."""
    if config is not None:
        return config
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE]).expanduser()
    base = environ.get("XDG_CONFIG_HOME")
    own = (Path(base) if base else Path.home() / ".config") / "steward" / "config.toml"
    return own if own.is_file() else None


def _read_file(reading: _Reading, file: Path) -> None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reading.faults.append(f"{file}: cannot be read ({error.strerror or error})")
        return
    except ValueError as error:
        reading.faults.append(f"{file}: is not TOML ({error})")
        return
    known = {each.path: each for each in all_settings()}
    for key, raw in _leaves(document):
        if key not in known:
            fault = _section_fault(key) or f"is not a setting{_nearest(key, list(known))}"
            reading.faults.append(f"{file}: {key} {fault}")
            continue
        try:
            value = from_toml(known[key], raw, folder=file.absolute().parent)
        except WrongValueError as error:
            reading.faults.append(f"{file}: {key} {error}")
        else:
            reading.take(known[key], value, origin=f"{file}: {key}")


def _leaves(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        if key in SECTIONS and isinstance(value, dict):
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def _section_fault(key: str) -> str | None:
    return f"is a section: write [{key}] above its settings" if key in SECTIONS else None


def _read_environment(reading: _Reading, environ: Mapping[str, str]) -> None:
    known = {each.environment_name: each for each in all_settings()}
    for name in sorted(environ):
        if not name.startswith(ENVIRONMENT_PREFIX) or name in OTHER_VARIABLES:
            continue
        if _is_service_link(name, environ[name]):
            continue
        if name not in known:
            reading.faults.append(f"${name} is not a setting{_nearest(name, list(known))}")
            continue
        _read_text(reading, known[name], environ[name], origin=f"${name}")


def _is_service_link(name: str, value: str) -> bool:
    is_address = name.endswith("_PORT") and value.startswith(("tcp://", "udp://"))
    return is_address or SERVICE_LINK.fullmatch(name) is not None


def _read_flags(reading: _Reading, flags: Mapping[str, str]) -> None:
    known = {each.path: each for each in all_settings()}
    for path, text in flags.items():
        _read_text(reading, known[path], text, origin=flag_name(path))


def stated_flags(arguments: Mapping[str, object]) -> dict[str, str]:
    """Return what parsed arguments state about settings: those named like a setting's path.

    A command's own ``add_argument("--port", dest="warehouse.port")`` thus becomes the last word on
    that setting, checked and reported together with all others.
    """
    paths = {each.path for each in all_settings()}
    stated = {key: value for key, value in arguments.items() if key in paths}
    return {key: _flag_text(value) for key, value in stated.items() if value is not None}


def _flag_text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def flag_name(path: str) -> str:
    """Return the flag of a setting: ``--data-dir``, ``--log-level``."""
    section, _, name = path.rpartition(".")
    words = path if section in WHOLE_NAMED_SECTIONS or name == "url" else name
    return "--" + words.replace(".", "-").replace("_", "-")


def _read_text(reading: _Reading, setting: Setting, text: str, *, origin: str) -> None:
    try:
        value = from_text(setting, text)
    except WrongValueError as error:
        reading.faults.append(f"{origin} {error}")
    else:
        reading.take(setting, value, origin=origin)


def _nearest(name: str, known: list[str]) -> str:
    by_last_word = {each.rpartition(".")[2]: each for each in known}
    close = difflib.get_close_matches(name, known, n=1) or [
        by_last_word[each]
        for each in difflib.get_close_matches(name.rpartition(".")[2], by_last_word, n=1)
    ]
    return f"; did you mean {close[0]}?" if close else ""


def _settings_error(faults: list[str]) -> SettingsError:
    hint = "`steward settings schema` describes every setting"
    if len(faults) == 1:
        return SettingsError(faults[0], hint=hint)
    listed = "".join(f"\n  - {fault}" for fault in faults)
    return SettingsError(f"{len(faults)} settings are wrong:{listed}", hint=hint)


def _assemble(values: Mapping[str, object]) -> Settings:
    sections = {
        name: section(
            **{
                key.removeprefix(f"{name}."): value
                for key, value in values.items()
                if key.startswith(f"{name}.")
            }
        )
        for name, section in SECTIONS.items()
    }
    own = {key: value for key, value in values.items() if "." not in key}
    return Settings(**own, **sections)  # type: ignore[arg-type]  # values were checked one by one
