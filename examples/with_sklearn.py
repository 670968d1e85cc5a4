"""k-mixup as a scikit-learn estimator: a search for k and alpha when some labels are wrong.

    python examples/with_sklearn.py [--epochs 120]

500 of scikit-learn's digits, of which a fifth have a random label. A network without mixing learns
the wrong labels too; mixing prevents that. The search chooses k and alpha by cross-validation on
the same noisy labels, and the test labels are clean.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from kmixup.integrations.sklearn import KMixupClassifier


def main() -> None:
    parser = argparse.ArgumentParser(description="k-mixup as a scikit-learn estimator.")
    parser.add_argument("--epochs", type=int, default=120, help="training epochs")
    epochs = parser.parse_args().epochs

    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=500, random_state=0, stratify=y
    )
    random = np.random.default_rng(0)
    wrong = random.random(len(y_train)) < 0.2
    y_train = np.where(wrong, random.integers(0, 10, len(y_train)), y_train)

    model = KMixupClassifier(max_iter=epochs, random_state=0)
    search = GridSearchCV(model, {"k": [1, 8, 16], "alpha": [0.2, 1.0, 4.0]}, cv=3)
    search.fit(X_train, y_train)
    print(f"chosen by cross-validation: {search.best_params_}")
    unmixed = KMixupClassifier(method="erm", max_iter=epochs, random_state=0).fit(X_train, y_train)
    mixed, plain = search.score(X_test, y_test), unmixed.score(X_test, y_test)
    print(f"test accuracy {100 * mixed:.1f} %, without mixing {100 * plain:.1f} %")


if __name__ == "__main__":
    main()
