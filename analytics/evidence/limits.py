"""From where a signal counts as a sign of work, whatever a rule says of utilisation and power."""

from __future__ import annotations

from typing import Final

from steward.units import MIB_BYTES, SECONDS_PER_HOUR, SECONDS_PER_MINUTE

TRAFFIC_ACTIVE_BYTES_PER_S: Final = 16 * MIB_BYTES
"""PCIe and NVLink together; a resting board moves less than a tenth of it for its monitoring."""
MEMORY_CHANGE_BYTES: Final = MIB_BYTES
"""Memory in use that moves by this much is a sign of work; boards are read in whole MiB."""
MEMORY_LOADED_BYTES: Final = 256 * MIB_BYTES
"""From here on a context is open, and a board at rest draws more than an empty one."""
READING_STANDS_FOR: Final = 1.25
"""The time since the reading before is observed up to so many usual intervals: jitter passes. Of a
longer time only one usual interval is: a missed reading is time that nobody saw."""
TAIL_INTERVALS: Final = 2
"""The newest reading may be so many intervals old before the time since counts as unobserved."""
FROZEN_AFTER_S: Final = 10 * SECONDS_PER_MINUTE
"""Power and temperature that do not move at all for so long are an old reading shown again, where
no energy counter says otherwise."""
LEVEL_FROM_RATIO: Final = 0.02
LEVEL_BELOW_RATIO: Final = 0.10
LEVEL_SPREAD_RATIO: Final = 0.05
"""Activity between the first two that moves by no more than the third is small and level."""
LEVEL_AFTER_S: Final = 6 * SECONDS_PER_HOUR
"""Small, level activity for so long is no pause between two pieces of work."""
REST_BELOW_RATIO: Final = 0.005
"""Activity below this is rest, when a board's own power at rest is learnt."""
REST_OVER_MODEL_RATIO: Final = 1.3
"""A board's own power at rest counts up to so many times that of other boards of its model."""
REST_OF_LIMIT_RATIO: Final = 0.35
"""No board rests at a larger share of its power limit: what seems so is broken counters."""
KNOWN_FROM_RATIO: Final = 0.9
"""Of the time since a workload began, this much must be observed to say that it never worked."""
