"""Grids of trials: expanded, run by engines, and stored as rows."""
