"""EDGE FOR PEOPLE: Streamlit screens and printed reports.

Shows what ``analytics`` measured over rows that ``sql`` answered. Holds no SQL, no threshold and no
measure of its own, and never writes to the warehouse. Percent signs, human durations and other
printed forms exist only here, in ``format``. Imports ``sql``, ``analytics`` and ``steward``;
Streamlit is imported nowhere else.
"""
