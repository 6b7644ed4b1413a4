"""WAREHOUSE: the data contract and the only door to DuckDB and to the state database.

The law of this room:

* It imports the floor ``steward`` and no other room. ``duckdb`` and ``sqlalchemy`` are imported
  here and nowhere else; callers see the ports of ``steward.ports`` and Arrow tables.
* One process owns a data directory. Everyone else asks the owner over HTTP (``sql.client``), by
  the same protocol and the same contract tests.
* SQL lives in files: ``migrations/`` (numbered, never edited after release), ``views/``,
  ``queries/`` (one select each, with purpose, grain and parameters) and ``checks/``. Values are
  bound, never pasted. SQL selects, joins and narrows; it does not judge.
* An append is exactly once: a batch and the record of its id are one transaction, and what was
  acknowledged survives ``kill -9``.
* A cursor belongs to one query at a time, never to two threads.
* What is missing is null, never 0; NaN becomes null at this border.
"""
