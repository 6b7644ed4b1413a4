"""The settings as a flat list: what their dataclasses say, read once by loader, schema and docs."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from steward.settings.model import Settings
from steward.settings.rules import Bounds, Pattern, Secret

ENVIRONMENT_PREFIX = "STEWARD_"
Rule = Bounds | Pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What values a setting takes."""

    kind: type = str
    """``str``, ``int``, ``float`` or ``Path``: the type of the value, or of each item of a list."""
    choices: tuple[str, ...] = ()
    """The only texts allowed; empty allows all."""
    rules: tuple[Rule, ...] = ()
    is_optional: bool = False
    is_list: bool = False
    is_secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting, wherever it is said."""

    path: str
    """Its name in the TOML file, with the section before a dot: ``warehouse.port``."""
    shape: Shape
    default: object
    """The value when nobody says anything; None where the default depends on the machine."""
    description: str

    @property
    def environment_name(self) -> str:
        """Return the name of its environment variable."""
        return ENVIRONMENT_PREFIX + self.path.replace(".", "_").upper()


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return every setting in the order of the dataclasses."""
    return tuple(_walk(Settings, prefix=""))


def _walk(owner: type, *, prefix: str) -> Iterator[Setting]:
    hints = get_type_hints(owner, include_extras=True)
    texts = field_texts(owner)
    for each in fields(owner):
        hint = hints[each.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from _walk(hint, prefix=f"{prefix}{each.name}.")
            continue
        yield Setting(
            path=prefix + each.name,
            shape=shape_of(hint),
            default=_default(each),
            description=texts[each.name],
        )


def _default(each: Field[object]) -> object:
    return None if each.default is MISSING else each.default


def shape_of(hint: object) -> Shape:
    """Return the shape that a field's annotation states."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _with_marks(shape_of(parts[0]), parts[1:])
    if origin is Literal:
        return Shape(choices=parts)
    if origin is tuple:
        return replace(shape_of(parts[0]), is_list=True)
    if origin in {types.UnionType, Union}:
        return replace(shape_of(parts[0]), is_optional=True)
    if isinstance(hint, type) and hint in {str, int, float, Path}:
        return Shape(kind=hint)
    raise TypeError(f"a setting cannot be of type {hint}")


def _with_marks(shape: Shape, marks: tuple[object, ...]) -> Shape:
    rules = tuple(mark for mark in marks if isinstance(mark, Bounds | Pattern))
    return replace(shape, rules=rules, is_secret=any(isinstance(mark, Secret) for mark in marks))


@cache
def field_texts(owner: type) -> dict[str, str]:
    """Return the text written under each field of a dataclass, on one line each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    texts: dict[str, str] = {}
    for statement, following in pairwise(body):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
            case _:
                continue
    return texts
