"""Does the pairing, or the reading of alpha, decide MNIST's result? Written before the rows.

Four arms at 200 epochs, ten networks each, paired by seed: k = 64 at alpha = 10 with two loaders
(`results/mnist-200`), with each batch matched with its own reshuffle, with alpha raised to equal
xi, and mixup at alpha = 10.

Primary: test error, reshuffle − loaders, a paired t-test at 5 %. Secondary, Holm over three:
training error, reshuffle − loaders (on every twelfth training image, as in the rows of the
loaders), test error, equal xi − loaders, and test error, reshuffle − mixup at alpha = 10.

    python results/mnist-pairing/analysis.py
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
from scipy.stats import ttest_1samp

RESULTS = Path(__file__).parents[1]
Errors = dict[int, float]  # per cent, by seed


def errors(pairing: str, rule: str, k: int, field: str) -> Errors:
    """Return the errors of one arm; field is result (test images) or training."""
    found = {}
    for path in RESULTS.glob("mnist-[2p]*/rows.jsonl*"):
        text = path.read_bytes()
        for line in (gzip.decompress(text) if path.suffix == ".gz" else text).splitlines():
            row = json.loads(line)
            method = row["trial"]["method"] if "trial" in row else {}
            arm = [method.get(name) for name in ("pairing", "alpha_rule", "k", "alpha")]
            if arm == [pairing, rule, k, 10.0] and "result" in row:
                found[row["trial"]["seed"]] = 100 * row[field]["error"]
    return found


def paired(name: str, new: Errors, old: Errors) -> None:
    seeds = sorted(new.keys() & old.keys())
    if len(seeds) < 3:
        print(f"{name}: {len(seeds)} pairs")
        return
    test = ttest_1samp([new[seed] - old[seed] for seed in seeds], 0)
    low, high = test.confidence_interval()
    mean = np.mean([new[seed] - old[seed] for seed in seeds])
    print(f"{name}: {mean:+.3f} [{low:+.3f}, {high:+.3f}], p = {test.pvalue:.4f}, n = {len(seeds)}")


def main() -> None:
    for field in ("result", "training"):
        loaders = errors("loaders", "same", 64, field)
        reshuffle = errors("reshuffle", "same", 64, field)
        paired(f"{field} error, reshuffle − loaders", reshuffle, loaders)
        if field == "result":
            paired("result error, equal xi − loaders", errors("loaders", "xi", 64, field), loaders)
            mixup = errors("loaders", "same", 1, field)
            paired("result error, reshuffle − mixup", reshuffle, mixup)


if __name__ == "__main__":
    main()
