"""``steward collect doctor``: what the collector can see and what not, and how to mend it."""
