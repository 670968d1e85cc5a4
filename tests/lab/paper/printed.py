"""The printed tables by name, and their lowest errors: what the tests of the paper share."""

from kmixup.lab.paper.presets import PRESETS

TABLES = {
    table.name: table
    for preset in PRESETS.values()
    for table in preset.tables
    if table.errors is not None and preset.name != "script"  # which shows those of cifar10 again
}


def lowest(table, *, ks, columns=None):
    """The lowest printed error of the rows `ks`, in `columns` or in all of them."""
    errors = (table.error_at(k, column) for k in ks for column in columns or table.columns)
    return min(errors)


def above_one(table):
    return tuple(k for k in table.ks if k > 1)
