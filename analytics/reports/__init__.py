"""Typed results: what a measure tells a person, before any screen or file format."""
