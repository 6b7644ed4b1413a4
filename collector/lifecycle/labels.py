"""Labels as they are stored: as JSON, without those that only controllers care for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

CONTROLLER_LABELS: Final = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "controller-uid",
        "batch.kubernetes.io/controller-uid",
        "pod-template-generation",
    }
)


def kept_labels(labels: Mapping[str, str] | None) -> str | None:
    """Return the labels as JSON, keys ascending; None where none are left."""
    kept = {name: text for name, text in (labels or {}).items() if name not in CONTROLLER_LABELS}
    return json.dumps(kept, sort_keys=True) if kept else None
