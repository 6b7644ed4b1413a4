"""Settings: what an operator may choose, where it may be said, and what is wrong with it.

Sources, later ones win: defaults, a TOML file, ``STEWARD_…`` variables, flags. Nothing here knows
which room reads which setting.
"""

from steward.settings.load import Resolved, load, resolve, stated_flags
from steward.settings.model import (
    AgentSettings,
    CollectSettings,
    DashboardSettings,
    EnforceSettings,
    KubernetesSettings,
    LogSettings,
    OwnershipSettings,
    Settings,
    WarehouseSettings,
)

__all__ = [
    "AgentSettings",
    "CollectSettings",
    "DashboardSettings",
    "EnforceSettings",
    "KubernetesSettings",
    "LogSettings",
    "OwnershipSettings",
    "Resolved",
    "Settings",
    "WarehouseSettings",
    "load",
    "resolve",
    "stated_flags",
]
