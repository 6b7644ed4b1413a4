"""The schema and the page say what the loader does; the committed copies are up to date."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

from steward.errors import SettingsError
from steward.settings import load
from steward.settings.fields import all_settings, shape_of
from steward.settings.schema import markdown_text, schema, schema_text

DOCS = Path(__file__).parents[3] / "docs"


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize(
    ("name", "text"),
    [("settings.schema.json", schema_text()), ("settings.md", markdown_text())],
    ids=["schema", "page"],
)
def test_the_committed_copy_is_up_to_date(name: str, text: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("document", "is_right"),
    [
        pytest.param("", True, id="nothing"),
        pytest.param("cluster = 'a'", True, id="a text"),
        pytest.param("cluster = ''", False, id="an empty text"),
        pytest.param("data_dir = ''", False, id="an empty path"),
        pytest.param("colour = 1", False, id="unknown"),
        pytest.param("[log]\nlevel = 'info'", True, id="a choice"),
        pytest.param("[log]\nlevel = 'INFO'", False, id="no choice"),
        pytest.param("[log]\ncolour = 1", False, id="unknown in a section"),
        pytest.param("[warehouse]\nport = 65535", True, id="the last port"),
        pytest.param("[warehouse]\nport = 65536", False, id="past the last port"),
        pytest.param("[warehouse]\nport = true", False, id="a bool for a number"),
        pytest.param("[warehouse]\nurl = 'ftp://a'", False, id="another scheme"),
        pytest.param("[warehouse]\nreader_tokens = ['a', 'b']", True, id="tokens"),
        pytest.param("[warehouse]\nreader_tokens = ['a b']", False, id="a token with a space"),
        pytest.param("[warehouse]\nbody_limit_bytes = 1023", False, id="too few bytes"),
        pytest.param("[warehouse]\nbody_limit_bytes = 1024", True, id="just enough bytes"),
        pytest.param("[collect]\ninterval_s = 0", False, id="no interval"),
        pytest.param("[collect]\ninterval_s = 1", True, id="whole seconds"),
        pytest.param("[collect]\ntargets = 'http://a'", False, id="text for a list"),
        pytest.param("log = 1", False, id="a number for a section"),
    ],
)
def test_schema_and_loader_agree(tmp_path: Path, document: str, *, is_right: bool) -> None:
    file = tmp_path / "config.toml"
    file.write_text(document, encoding="utf-8")
    try:
        load(config=file, environ={})
        is_loaded = True
    except SettingsError:
        is_loaded = False

    validator = jsonschema.Draft202012Validator(schema())
    assert (validator.is_valid(tomllib.loads(document)), is_loaded) == (is_right, is_right)


def test_each_setting_says_more_than_its_name() -> None:
    thin = [each.path for each in all_settings() if len(each.description) < 25]

    assert thin == []


def test_defaults_keep_their_own_rules() -> None:
    properties = json.loads(schema_text())["properties"]
    defaults = {
        section: {
            name: each["default"] for name, each in body["properties"].items() if "default" in each
        }
        for section, body in properties.items()
        if body["type"] == "object"
    }

    jsonschema.validate(defaults, schema())
    assert defaults["warehouse"]["port"] == 8420


def test_secrets_are_marked() -> None:
    secret = {each.path for each in all_settings() if each.shape.is_secret}

    assert secret == {
        "warehouse.token",
        "warehouse.writer_tokens",
        "warehouse.reader_tokens",
        "warehouse.enforcer_tokens",
        "warehouse.admin_tokens",
        "enforce.notify_urls",
    }


def test_a_setting_of_an_unknown_type_is_a_mistake_in_the_code() -> None:
    with pytest.raises(TypeError, match="a setting cannot be of type"):
        shape_of(dict[str, int])
