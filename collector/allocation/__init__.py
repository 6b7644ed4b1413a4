"""Who held which device when: intervals built from polls, pure and without a clock of their own.

``builder.AllocationBuilder`` is the way in; ``docs/allocation.md`` states the rules.
"""
