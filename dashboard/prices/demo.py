"""Example prices of common models, so that a demonstration speaks of money.

Public list prices per GPU-hour as they are commonly quoted, recalled and rounded: examples to start
with, and nobody's offer. Replace them by what your own contracts say.
"""

from __future__ import annotations

from typing import Final

EXAMPLE_CSV: Final = """\
model,rate,currency,from,source
H100-SXM-80GB,4.10,USD,2020-01-01T00:00:00Z,example: public list price recalled
H100-PCIE-80GB,2.90,USD,2020-01-01T00:00:00Z,example: public list price recalled
H200-SXM-141GB,4.80,USD,2020-01-01T00:00:00Z,example: public list price recalled
A100-SXM4-80GB,2.75,USD,2020-01-01T00:00:00Z,example: public list price recalled
A100-SXM4-40GB,2.05,USD,2020-01-01T00:00:00Z,example: public list price recalled
L40S,1.40,USD,2020-01-01T00:00:00Z,example: public list price recalled
T4,0.35,USD,2020-01-01T00:00:00Z,example: public list price recalled
"""
"""In the form that ``steward price import FILE.csv`` reads; stored by ``--example``."""
