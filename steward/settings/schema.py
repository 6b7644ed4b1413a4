"""The settings described for machines (JSON Schema 2020-12) and for people (Markdown)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from steward.settings.fields import Setting, Shape, all_settings, field_texts
from steward.settings.load import OTHER_VARIABLES
from steward.settings.model import Settings

KIND_WORDS = {str: "string", int: "integer", float: "number", Path: "string"}
MARKDOWN_HEAD = """\
# Settings

Written by `steward settings schema --format markdown`; do not edit by hand.

Later sources win: defaults, the TOML file (`--config`, else `$STEWARD_CONFIG`, else
`$XDG_CONFIG_HOME/steward/config.toml`, that is `~/.config/steward/config.toml`), environment
variables, flags. A list in a variable is separated by commas. Every fault is reported at once and
ends the process with exit code 3. `steward settings show` prints the settings in force and where
each was said; secrets are never printed."""
PEOPLE_WORDS = {str: "text", int: "whole number", float: "number", Path: "path"}


def schema_text() -> str:
    """Return the JSON Schema of a settings file, indented, with a final newline."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> dict[str, object]:
    """Return the JSON Schema of a settings file."""
    properties: dict[str, object] = {}
    for path, members in _by_section():
        described: dict[str, object] = {
            each.path.rpartition(".")[2]: _property(each) for each in members
        }
        properties.update(described if not path else {path: _section(path, described)})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Steward settings",
        "description": "The content of ~/.config/steward/config.toml.",
        **_closed_object(properties),
    }


def _section(name: str, properties: dict[str, object]) -> dict[str, object]:
    return {"description": field_texts(Settings)[name], **_closed_object(properties)}


def _closed_object(properties: dict[str, object]) -> dict[str, object]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _property(setting: Setting) -> dict[str, object]:
    shape = setting.shape
    kind = _value_schema(shape)
    described = {"type": "array", "items": kind} if shape.is_list else kind
    described = {"description": setting.description.replace("``", "`"), **described}
    if setting.default is not None:
        default = setting.default
        described["default"] = str(default) if isinstance(default, Path) else default
    if shape.is_secret:
        described["writeOnly"] = True
    return described


def _value_schema(shape: Shape) -> dict[str, object]:
    schema: dict[str, object] = {"type": KIND_WORDS[shape.kind]}
    if shape.choices:
        schema["enum"] = list(shape.choices)
    for rule in shape.rules:
        schema.update(rule.schema())
    if shape.kind is Path:
        schema["minLength"] = 1
    return schema


def _by_section() -> Iterable[tuple[str, list[Setting]]]:
    sections: dict[str, list[Setting]] = {}
    for each in all_settings():
        sections.setdefault(each.path.rpartition(".")[0], []).append(each)
    return sections.items()


def markdown_text() -> str:
    """Return the reference of all settings, as committed in ``docs/settings.md``."""
    parts = [MARKDOWN_HEAD]
    for section, members in _by_section():
        parts += _section_markdown(section, members)
    rows = [f"| `{name}` | {meaning} |" for name, meaning in OTHER_VARIABLES.items()]
    parts += ["## Other variables", "\n".join(["| variable | meaning |", "| --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"


def _section_markdown(section: str, members: list[Setting]) -> list[str]:
    heading = f"## `[{section}]`" if section else "## Without a section"
    text = [field_texts(Settings)[section]] if section else []
    head = ["| setting | variable | type | default | meaning |", "| --- | --- | --- | --- | --- |"]
    return [heading, *text, "\n".join([*head, *(_row(each) for each in members)])]


def _row(setting: Setting) -> str:
    name = setting.path.rpartition(".")[2]
    cells = [
        f"`{name}`",
        f"`{setting.environment_name}`",
        _type_words(setting.shape),
        _default_words(setting),
        setting.description.replace("``", "`"),
    ]
    return f"| {' | '.join(cells)} |"


def _type_words(shape: Shape) -> str:
    words = " or ".join(f"`{each}`" for each in shape.choices) or PEOPLE_WORDS[shape.kind]
    return f"list of {words}" if shape.is_list else words


def _default_words(setting: Setting) -> str:
    if setting.shape.is_optional:
        return "unset"
    if setting.default is None:
        return "see meaning"
    return "empty" if setting.default == () else f"`{setting.default}`"
