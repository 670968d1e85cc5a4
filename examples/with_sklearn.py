"""k-mixup as a scikit-learn estimator: categorical columns, a pipeline and a grid search.

    python examples/with_sklearn.py [--epochs 60]

The table has two numeric and two categorical columns. The pipeline encodes the latter and imputes
missing numbers. The search chooses k and alpha by cross-validation.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kmixup.integrations.sklearn import KMixupClassifier


def penguins(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return synthetic penguins: bill, mass and island each predict the species weakly."""
    random = np.random.default_rng(0)
    species = random.integers(0, 3, n)
    bill = random.normal([39, 47, 49], [2.5, 3, 3.5], (n, 3))[np.arange(n), species]
    mass = random.normal([3700, 5100, 3750], [450, 500, 380], (n, 3))[np.arange(n), species]
    mass[random.random(n) < 0.05] = np.nan
    islands = np.array([["Torgersen", "Biscoe"], ["Biscoe", "Biscoe"], ["Dream", "Dream"]])
    frame = pd.DataFrame(
        {
            "bill": bill,
            "mass": mass,
            "island": islands[species, random.integers(0, 2, n)],
            "sex": pd.Categorical(random.choice(["female", "male"], n)),
        }
    )
    return frame, np.array(["Adelie", "Gentoo", "Chinstrap"])[species]


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup as a scikit-learn estimator.")
    parser.add_argument("--epochs", type=int, default=60, help="training epochs")
    epochs = parser.parse_args().epochs

    frame, species = penguins(400)
    X_train, X_test, y_train, y_test = train_test_split(frame, species, random_state=0)
    numbers = make_column_transformer(
        (SimpleImputer(), ["bill", "mass"]), (OneHotEncoder(), ["island", "sex"])
    )
    model = make_pipeline(
        numbers, KMixupClassifier(learning_rate_init=0.01, max_iter=epochs, random_state=0)
    )
    grid = {"kmixupclassifier__mixer__k": [1, 16], "kmixupclassifier__mixer__alpha": [0.2, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X_train, y_train)
    chosen = {name.split("__")[-1]: value for name, value in search.best_params_.items()}
    print(f"chosen by cross-validation: {chosen}")
    print(f"test accuracy {100 * search.score(X_test, y_test):.1f} %")


if __name__ == "__main__":
    main()
