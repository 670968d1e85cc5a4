"""Grids of trials run by engines and stored as rows, tuning and comparisons."""
