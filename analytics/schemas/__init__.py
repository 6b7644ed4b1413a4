"""Declared shapes of the rows that measures read, by the query or state table that fills them."""
