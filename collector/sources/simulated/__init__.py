"""A simulated fleet: two weeks of a shared GPU cluster, the same for the same seed, byte for byte.

A small real scheduler decides who holds what and who waits; telemetry is then drawn from what
the holders do, so that waits, allocations and samples agree with each other. Every pathology a
fleet shows is planted (see ``stories``). Nothing here reads the clock, a file or a network.
"""

from collector.sources.simulated.parameters import SimulationParameters
from collector.sources.simulated.stream import simulated_batches

__all__ = ["SimulationParameters", "simulated_batches"]
