"""How a policy file is read: sections of fields, each of a shape that reads and describes it.

Reading never stops at the first fault: a faulty value is noted with its place, and a harmless one
stands in for it, so that a person sees every fault at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeGuard, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Schema = dict[str, object]
SHOWN_CHARACTERS: Final = 40
"""Of a faulty text in a message."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where."""

    path: str
    text: str

    def __str__(self) -> str:
        """Return both, as a line."""
        return f"{self.path or 'the policy'}: {self.text}"


@dataclass(frozen=True, slots=True)
class At:
    """A place in the document, and the list to which its faults are added."""

    faults: list[Fault] = field(default_factory=list)
    path: str = ""

    def fault(self, text: str) -> None:
        """Note a fault at this place."""
        self.faults.append(Fault(self.path, text))

    def key(self, name: str) -> At:
        """Return the place of a key below."""
        return At(self.faults, f"{self.path}.{name}" if self.path else name)

    def item(self, number: int) -> At:
        """Return the place of an item below."""
        return At(self.faults, f"{self.path}[{number}]")


class Shape(Protocol[T_co]):
    """Reads values of one type."""

    @property
    def blank(self) -> T_co:
        """Return what stands in for a faulty value."""
        ...

    def read(self, value: object, at: At) -> T_co:
        """Return the value, or ``blank`` once its faults are noted."""
        ...

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Field(Generic[T_co]):
    """One key of a section."""

    name: str
    shape: Shape[T_co]
    about: str
    """What it means, as the JSON Schema and the documentation say."""
    default: T_co | None = None
    """None: it must be written, unless ``is_optional``."""
    is_optional: bool = False
    """Whether it may be left out or null, and is then None."""

    @property
    def is_required(self) -> bool:
        """Tell whether it must be written."""
        return self.default is None and not self.is_optional

    def schema(self) -> Schema:
        """Return the JSON Schema of its value."""
        inner = self.shape.schema()
        if self.is_optional:
            inner = {"anyOf": [inner, {"type": "null"}]}
        return {"description": self.about, **inner}


class Section:
    """One mapping of the document, read key by key."""

    def __init__(self, values: Mapping[object, object], at: At) -> None:
        """Keep the values and their place."""
        self._values = values
        self._at = at

    def get(self, field: Field[T]) -> T:
        """Return the value of a key, or its default where it is left out."""
        if field.name in self._values:
            return field.shape.read(self._values[field.name], self._at.key(field.name))
        if field.default is None:
            self._at.key(field.name).fault("is missing")
            return field.shape.blank
        return field.default

    def maybe(self, field: Field[T]) -> T | None:
        """Return the value of a key; None where it is left out or null."""
        value = self._values.get(field.name)
        return None if value is None else field.shape.read(value, self._at.key(field.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested(Generic[T]):
    """A mapping of known keys."""

    fields: tuple[Field[object], ...]
    make: Callable[[Section], T]

    @property
    def blank(self) -> T:
        """Return what an empty mapping makes."""
        return self.make(Section({}, At()))

    def read(self, value: object, at: At) -> T:
        """Return what the mapping makes; unknown keys are faults."""
        if not isinstance(value, Mapping):
            at.fault(f"must be a mapping, not {shown(value)}")
            return self.blank
        names = {field.name for field in self.fields}
        for key in value:
            if key not in names:
                at.key(str(key)[:SHOWN_CHARACTERS]).fault(
                    f"is not known; known are {', '.join(sorted(names))}"
                )
        return self.make(Section(value, at))

    def schema(self) -> Schema:
        """Describe the keys, those that must be there, and allow no other."""
        required = [field.name for field in self.fields if field.is_required]
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {field.name: field.schema() for field in self.fields},
            **({"required": required} if required else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf(Generic[T]):
    """A list of one shape, kept in its order."""

    item: Shape[T]
    least: int = 0

    @property
    def blank(self) -> tuple[T, ...]:
        """Return no items."""
        return ()

    def read(self, value: object, at: At) -> tuple[T, ...]:
        """Return the items."""
        if not is_list(value):
            at.fault(f"must be a list, not {shown(value)}")
            return ()
        if len(value) < self.least:
            at.fault(f"must have at least {self.least} item{'s' if self.least > 1 else ''}")
        return tuple(self.item.read(one, at.item(number)) for number, one in enumerate(value))

    def schema(self) -> Schema:
        """Describe the items."""
        least: Schema = {"minItems": self.least} if self.least else {}
        return {"type": "array", **least, "items": self.item.schema()}


def shown(value: object) -> str:
    """Return a value for a message: short, and never a whole container."""
    if isinstance(value, Mapping):
        return "a mapping"
    if is_list(value):
        return "a list"
    text = "null" if value is None else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Tell whether it is a list: a text is none."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
