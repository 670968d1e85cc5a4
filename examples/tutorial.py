"""Tutorial: train on 100 digits with and without mixing, and test under noise.

It takes about a minute on one CPU core and downloads nothing. Run `python examples/tutorial.py`,
open `examples/tutorial.ipynb`, or run it cell by cell in an editor that supports `# %%`. The site
shows all output and figures.
"""

# %% [markdown]
# ## The task
#
# Learn to read digits of 8 × 8 pixels from 100 examples, then read new digits, with and without
# noise. Small training sets are where mixing can help most.
#
# Each seed draws its own training set. We chose the network, k and alpha on another half of the
# images with other seeds, so the results below are a fresh test.

# %%
from collections.abc import Callable

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import kmixup

SEEDS, EPOCHS = range(8), 200
NOISE = (0.0, 0.1, 0.2, 0.3, 0.4)  # standard deviation; pixels are in [0, 1]
torch.set_num_threads(1)  # fastest for small tensors
seeded = torch.Generator().manual_seed

pixels, labels = map(torch.as_tensor, load_digits(return_X_y=True))
kept = torch.randperm(len(pixels), generator=seeded(12345))[900:]  # the first 900 made the choice
x, y = pixels[kept].float() / 16, labels[kept]
print(f"{len(x)} digits: 100 to train on, {len(x) - 100} to test on")

# %% [markdown]
# ## Mix a batch
#
# `mix` returns a record of the mixed batch: partners, coefficients and distances. Mixup is k = 1:
# partners are random. At k = 16, blocks of 16 digits are matched with 16 others, so that the total
# squared distance is as small as possible.

# %%
records = {}
for k in (1, 16):
    mix = kmixup.KMixup(k=k, alpha=1.0, num_classes=10, lam_per="sample", generator=seeded(0))
    records[k] = mix.mix(x[:50], y[:50])
    other = (y[:50] != y[:50][records[k].partner]).float().mean()
    print(
        f"k = {k:2}: partners are {records[k].distance.mean():.2f} apart, "
        f"{other:.0%} are another digit"
    )

# %%
figure = Figure(figsize=(8, 3.4), layout="constrained")
for part, (k, m) in zip(figure.subfigures(1, 2, squeeze=False).flat, records.items(), strict=True):
    part.suptitle(f"k = {k}: digit, partner, mixed")
    rows = (x[:6], x[:50][m.partner[:6]], m.x[:6])
    for axes, digit in zip(part.subplots(3, 6).flat, torch.cat(rows), strict=True):
        axes.imshow(digit.view(8, 8).numpy(), cmap="gray_r", vmin=0, vmax=1)
        axes.set_axis_off()

# %% [markdown]
# Matched partners look similar: the mixed digit often still reads as one digit.
#
# ## Train
#
# Mixing is one line of the training loop. ERM, training without mixup, is alpha = 0. All methods
# have the same training set, initial weights and batch order for a seed.


# %%
def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(384, 10),
    )


def train(network: Callable[[], nn.Module], k: int, alpha: float, seed: int) -> nn.Module:
    """Return a network trained on the first 100 digits in the seed's order."""
    torch.manual_seed(seed)
    net, order = network(), seeded(seed)
    chosen = torch.randperm(len(x), generator=order)[:100]
    mix = kmixup.KMixup(k=k, alpha=alpha, num_classes=10, generator=seeded(seed))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    for _ in range(EPOCHS):
        for index in chosen[torch.randperm(100, generator=order)].split(50):
            mixed, soft = mix(x[index], y[index])
            optimizer.zero_grad()
            cross_entropy(net(mixed), soft).backward()
            optimizer.step()
    return net.eval()


def errors(net: nn.Module, seed: int) -> list[float]:
    """Return the test error in per cent at each level of noise."""
    tested = torch.randperm(len(x), generator=seeded(seed))[100:]
    noise = torch.randn(len(tested), 64, generator=seeded(seed))
    with torch.no_grad():
        answers = [net(x[tested] + level * noise).argmax(1) for level in NOISE]
    return [100 * float((answer != y[tested]).float().mean()) for answer in answers]


METHODS = {"ERM": (1, 0.0), "mixup": (1, 1.0), "k-mixup": (16, 1.0)}  # k and alpha


def compare(network: Callable[[], nn.Module]) -> dict[str, Tensor]:
    """Return the errors of each method, `(seeds, levels of noise)`."""
    return {
        name: torch.tensor([errors(train(network, k, alpha, seed), seed) for seed in SEEDS])
        for name, (k, alpha) in METHODS.items()
    }


def report(found: dict[str, Tensor]) -> None:
    """Print mean errors, and mean differences from ERM ± standard error over the seeds."""
    print("noise".ljust(18), *(f"{level:12.1f}" for level in NOISE))
    for name, values in found.items():
        print(name.ljust(18), *(f"{mean:10.1f} %" for mean in values.mean(0)))
    for name in ("mixup", "k-mixup"):
        change = found[name] - found["ERM"]
        spread = change.std(0) / len(change) ** 0.5
        cells = (f"{m:+6.1f} ± {s:.1f}" for m, s in zip(change.mean(0), spread, strict=True))
        print(f"{name} - ERM".ljust(18), *(cell.rjust(12) for cell in cells))


convolution = compare(convolutional)
report(convolution)

# %% [markdown]
# A difference of less than two standard errors is not significant.
#
# ## Another network
#
# The outcome depends on the network. Here are two fully connected layers on the same digits:


# %%
def fully_connected() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


connected = compare(fully_connected)
report(connected)

# %%
figure = Figure(figsize=(8, 3), layout="constrained")
both = {"convolutional": convolution, "fully connected": connected}
for axes, (title, found) in zip(figure.subplots(1, 2, sharey=True), both.items(), strict=True):
    for (name, values), mark in zip(found.items(), "so^", strict=True):
        spread = values.std(0) / len(values) ** 0.5
        axes.errorbar(NOISE, values.mean(0).numpy(), spread.numpy(), label=name, marker=mark)
    axes.set(title=title, xlabel="standard deviation of the noise", ylabel="test error, %")
    axes.label_outer()
axes.legend()

# %% [markdown]
# ## Read the result
#
# - **With convolutions** both kinds of mixing lower the error on clean digits. Under strong noise
#   mixup's gain is gone; k-mixup's is not.
# - **Fully connected**, neither gains much, and mixup does harm under strong noise.
# - Mixing is no free lunch: compare with ERM on your own data, on validation samples.
#
# Next: [choose k and alpha](guide/choosing.md), [your training loop](guide/loop.md),
# [your framework](frameworks/index.md), or a table on the command line, `kmixup tune table.csv`.
