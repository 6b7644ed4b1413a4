"""Money: exact arithmetic from device-time to statements.

In frames money is whole parts (ticks x price in millionths, 128 bits); at the small grain of owners
and rules, where ratios arise, it is whole numbers and fractions. ``rounding`` alone rounds it.
"""
