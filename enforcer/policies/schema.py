"""The JSON Schema of a policy file, as committed in ``docs/policy.schema.json``."""

from __future__ import annotations

import json

from enforcer.policies.policy_fields import POLICY


def schema() -> dict[str, object]:
    """Return the JSON Schema (2020-12) of a policy file.

    Every file that ``steward policy check`` accepts satisfies it; it cannot say how limits must go
    together, which the check does.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Steward policy",
        "description": "Rules for GPUs that are held and not used; see docs/policies.md.",
        **POLICY.schema(),
    }


def schema_text() -> str:
    """Return it indented, with a final newline."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
