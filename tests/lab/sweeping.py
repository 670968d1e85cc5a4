"""What the tests of sweeps share: engines without processes, and when rows are equal."""

from kmixup.lab.unit import run


class Inline:
    """Runs units in this process."""

    workers = 1

    def rows(self, units, *, device, running):
        for unit in units:
            yield run(unit, device=device, running=running)


class Fake:
    """Trains nothing: a row at once for every trial, failed for the seeds in `failing`."""

    workers = 1

    def __init__(self, failing=()):
        self.failing, self.ran = failing, []

    def rows(self, units, *, device, running):
        for unit in units:
            self.ran += [trial.id for trial in unit]
            yield [self.row(trial) for trial in unit]

    def row(self, trial):
        row = {"id": trial.id, "status": "done", "trial": trial.to_dict()}
        if trial.seed in self.failing:
            return row | {"status": "failed", "error": f"ValueError: seed {trial.seed}"}
        return row | {"result": {"error": trial.seed / 100}}


def table(rows):
    """Rows by their ids, without the time and the machine: what no circumstance may change."""
    circumstances = ("seconds", "finished", "machine")
    found = {
        row["id"]: {name: row[name] for name in row if name not in circumstances} for row in rows
    }
    assert len(found) == len(rows)
    return found
