"""From what was written to a value of the setting's type: pure, one fault at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from steward.settings.fields import Setting, Shape

KIND_NAMES = {str: "text", int: "a whole number", float: "a number", Path: "a path"}


class WrongValueError(ValueError):
    """The value does not fit; the text completes "SETTING …" and never repeats a secret."""


def from_text(setting: Setting, text: str) -> object:
    """Return the value that a variable or flag states; lists are separated by commas.

    Raises:
        WrongValueError: the text does not fit the setting.
    """
    shape = setting.shape
    if shape.is_list:
        items = [item.strip() for item in text.split(",")]
        return tuple(_checked(shape, _parsed(shape, item)) for item in items if item)
    if shape.is_optional and not text:
        return None
    return _checked(shape, _parsed(shape, text))


def from_toml(setting: Setting, raw: object, *, folder: Path) -> object:
    """Return the value that a TOML file states; relative paths start at the file's folder.

    Raises:
        WrongValueError: the value does not fit the setting.
    """
    shape = setting.shape
    if shape.is_list:
        if not isinstance(raw, list):
            raise WrongValueError(f"must be a list of {KIND_NAMES[shape.kind]}")
        return tuple(_checked(shape, _typed(shape, item, folder=folder)) for item in raw)
    return _checked(shape, _typed(shape, raw, folder=folder))


def _parsed(shape: Shape, text: str) -> object:
    if shape.kind is Path:
        return _absolute(text, folder=Path.cwd())
    parse: Callable[[str], object] = shape.kind
    try:
        return parse(text)
    except ValueError as error:
        raise WrongValueError(f"must be {KIND_NAMES[shape.kind]}{_shown(shape, text)}") from error


def _typed(shape: Shape, raw: object, *, folder: Path) -> object:
    if shape.kind is Path and isinstance(raw, str):
        return _absolute(raw, folder=folder)
    if shape.kind is float and isinstance(raw, int) and not isinstance(raw, bool):
        return float(raw)
    if not isinstance(raw, shape.kind) or isinstance(raw, bool):
        raise WrongValueError(f"must be {KIND_NAMES[shape.kind]}{_shown(shape, raw)}")
    return raw


def _absolute(text: str, *, folder: Path) -> Path:
    if not text:
        raise WrongValueError("must be a path that is not empty")
    return folder / Path(text).expanduser()


def _checked(shape: Shape, value: object) -> object:
    if shape.choices and value not in shape.choices:
        raise WrongValueError(f"must be one of {', '.join(shape.choices)}{_shown(shape, value)}")
    for rule in shape.rules:
        fault = rule.fault(value)  # type: ignore[arg-type]  # the shape's kind fits its own rules
        if fault is not None:
            raise WrongValueError(f"{fault}{_shown(shape, value)}")
    return value


def _shown(shape: Shape, value: object) -> str:
    return "" if shape.is_secret else f", not {value!r}"
