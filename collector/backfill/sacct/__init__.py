"""Slurm's accounting as text: from what ``sacct`` prints to rows of workloads.

The format is that of sacct's manual page (options ``--parsable2`` and ``--parsable``, fields of
``--format``), Slurm 20.11 to 25.05. Nothing here starts sacct.
"""
