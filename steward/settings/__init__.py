"""Settings: what an operator may choose, where it may be said, and what is wrong with it.

Sources, later ones win: defaults, a TOML file, ``STEWARD_…`` variables, flags. Nothing here knows
which room reads which setting.
"""

from steward.settings.load import Resolved, load, resolve, stated_flags
from steward.settings.model import (
    CollectSettings,
    DashboardSettings,
    LogSettings,
    Settings,
    WarehouseSettings,
)

__all__ = [
    "CollectSettings",
    "DashboardSettings",
    "LogSettings",
    "Resolved",
    "Settings",
    "WarehouseSettings",
    "load",
    "resolve",
    "stated_flags",
]
