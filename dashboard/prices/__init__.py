"""Prices, budgets and closed periods from the command line; what they mean is in ``analytics``."""
