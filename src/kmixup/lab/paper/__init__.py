"""The paper as data: its results tables and claims (`tables.toml`), and presets that re-run them.

Nothing is imported here, so that reports, which need only the classes of `tables`, don't read
the data file.
"""
