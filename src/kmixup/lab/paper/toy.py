"""Table 9: the toys."""

from __future__ import annotations

from kmixup.lab.paper.tables import PaperTable, PrintedErrors, columns


def _table(
    name: str, title: str, part: str, xis: tuple[float, ...], errors: PrintedErrors, *notes: str
) -> PaperTable:
    return PaperTable(
        name,
        title,
        f"Table 9 ({part})",
        data=name,
        model="mlp-toy",
        ks=(1, 2, 4, 8, 16),
        columns=columns((0.25, 1, 4, 16, 64), xis),
        errors=errors,
        erm=None,
        confidence=None,
        trials=5,
        notes=('ERM is given in words alone: "typically 100 %" accuracy.', *notes),
    )


ONE_RING = _table(
    "one-ring",
    "One Ring",
    "a",
    (0.10, 0.15, 0.20, 0.23, 0.25),
    (
        (5.01, 7.88, 9.85, 10.28, 9.75),
        (4.28, 5.19, 5.87, 6.19, 5.79),
        (2.93, 3.34, 4.10, 3.86, 3.92),
        (2.50, 2.77, 3.24, 3.15, 2.78),
        (2.42, 2.26, 2.54, 2.43, 2.30),
    ),
)

FOUR_BARS = _table(
    "four-bars",
    "Four Bars",
    "b",
    (0.50, 0.78, 1.0, 1.1, 1.2),
    (
        (0.00, 0.00, 6.79, 49.60, 49.80),
        (0.01, 0.00, 1.53, 47.82, 49.74),
        (0.00, 0.00, 1.41, 8.25, 9.58),
        (0.00, 0.00, 0.38, 0.62, 0.63),
        (0.00, 0.00, 0.08, 0.07, 0.22),
    ),
    "The text has higher k outperform k = 1 at every xi: at alpha 0.25 and 1 both are at 0.00.",
)

SWISS_ROLL = _table(
    "swiss-roll",
    "Swiss Roll",
    "c",
    (1.2, 1.9, 2.4, 2.8, 3.0),
    (
        (0.83, 9.52, 31.84, 37.38, 36.18),
        (0.49, 3.30, 28.41, 32.21, 32.75),
        (0.32, 1.34, 15.49, 27.53, 29.23),
        (0.35, 0.45, 2.67, 8.14, 2.76),
        (0.40, 0.33, 0.45, 0.27, 0.27),
    ),
)

TOYS = (ONE_RING, FOUR_BARS, SWISS_ROLL)
