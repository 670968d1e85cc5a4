"""Tutorial: from a mixed batch to a trained network, in half a minute on a CPU.

Run `python examples/tutorial.py`, or run it cell by cell in an editor that supports `# %%`.
The site shows all output and figures.
"""

# %% [markdown]
# ## Data
#
# Two spiral arms, one per class. The arms are close, so the average of two points on one arm often
# lies on the other.

# %%
import math

import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn.functional import cross_entropy

import kmixup

EPOCHS = 60
torch.set_num_threads(1)  # fastest for small tensors
seed = torch.Generator().manual_seed


def spirals(n: int, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points `(n, 2)` and classes `(n,)` of two noisy arms."""
    generator = seed(number)
    y = torch.arange(n) % 2
    share = torch.rand(n, generator=generator)
    t = math.pi * (0.25 + 8.75 * share).sqrt()
    angle = t + math.pi * y
    arms = 1.4 * t[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return arms + 0.2 * torch.randn(n, 2, generator=generator), y


x, y = spirals(2048, 0)
x_test, y_test = spirals(4096, 1)
print(x.shape, y.shape)

# %% [markdown]
# ## Mix a batch
#
# `draw` returns a record of the mixed batch: partners, coefficients and distances. At k = 1, which
# is mixup, partners are random. At k = 32 they are matched.

# %%
batch = slice(0, 128)
records = {}
for k in (1, 32):
    mix = kmixup.KMixup(k=k, alpha=1.0, num_classes=2, lam_per="sample", generator=seed(0))
    records[k] = mix.draw(x[batch], y[batch])
    across = (y[batch] != y[batch][records[k].partner]).float().mean()
    print(
        f"k = {k:2}: partners are {records[k].distance.mean():5.2f} apart, "
        f"{across:.0%} of another class"
    )

# %%
figure = Figure(figsize=(8, 4), layout="constrained")
for axes, (k, m) in zip(figure.subplots(1, 2), records.items(), strict=True):
    pairs = torch.stack([x[batch], x[batch][m.partner]], 1)
    axes.plot(*pairs.permute(2, 1, 0).numpy(), color="#bbbbbb", lw=0.6)
    look = {"cmap": "cividis_r", "s": 14, "edgecolors": "black", "linewidths": 0.3}
    axes.scatter(*m.x.T.numpy(), c=m.y[:, 1].numpy(), **look)
    axes.set(title=f"k = {k}", xticks=[], yticks=[], aspect="equal")

# %% [markdown]
# Grey lines join partners. Dots are mixed points, in the colour of their soft label. At k = 1 they
# fill the gaps between the arms with labels that the arms contradict.
#
# ## Calibrate alpha
#
# Matched partners are nearer, so at the same alpha a larger k moves points less. `calibrate` finds
# the alpha at which k = 32 moves them as far as mixup does at alpha = 0.1.

# %%
found = kmixup.calibrate(x, k=32, alpha=0.1, generator=seed(0))
print(f"alpha = {found.alpha:.2f}: xi = {found.xi:.2f}, mixup's is {found.target_xi:.2f}")

# %% [markdown]
# ## Inspect the data
#
# `inspect` measures what mixing does to the data, before any training. To choose k and alpha on
# validation samples, use `kmixup tune`.

# %%
inspection = kmixup.inspect(x, y, generator=seed(0))
for reading in inspection.readings:
    if reading.crossing is not None:  # None without labels
        print(
            f"k = {reading.k:3}: squared distance {reading.ratio.value:.2f} of mixup's, "
            f"{reading.crossing.value:.0%} of another class"
        )

# %% [markdown]
# ## Train
#
# One line of the training loop mixes. ERM is training without mixup. The three networks have the
# same initial weights and batch order.


# %%
def train(mix: kmixup.KMixup) -> nn.Module:
    """Return a network trained on mixed batches."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(2, 130), nn.ReLU(), nn.Linear(130, 120), nn.ReLU(), nn.Linear(120, 2)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    order = seed(1)
    for _ in range(EPOCHS):
        for index in torch.randperm(len(x), generator=order).split(128):
            mixed, soft = mix(x[index], y[index])
            optimizer.zero_grad()
            cross_entropy(net(mixed), soft).backward()
            optimizer.step()
    return net.eval()


networks = {}
for name, k, alpha in (("ERM", 1, 0.0), ("mixup", 1, 4.0), ("k-mixup, k = 32", 32, 4.0)):
    mix = kmixup.KMixup(k=k, alpha=alpha, num_classes=2, generator=seed(2))
    networks[name] = train(mix)
    with torch.no_grad():
        error = float((networks[name](x_test).argmax(1) != y_test).float().mean())
    print(f"{name:16} test error {error:6.2%}")

# %% [markdown]
# ## Compare the decision surfaces

# %%
edge = torch.linspace(-15, 15, 150)
plane = torch.stack(torch.meshgrid(edge, edge, indexing="xy"), 2).view(-1, 2)
figure = Figure(figsize=(9, 3.2), layout="constrained")
for axes, (name, net) in zip(figure.subplots(1, 3), networks.items(), strict=True):
    with torch.no_grad():
        prob = net(plane).softmax(1)[:, 1].view(150, 150).numpy()
    axes.imshow(prob, origin="lower", extent=(-15, 15, -15, 15), cmap="cividis_r", vmin=0, vmax=1)
    look = {"cmap": "cividis_r", "s": 8, "edgecolors": "white", "linewidths": 0.3}
    axes.scatter(*x[:200].T.numpy(), c=y[:200].numpy(), **look)
    axes.set(title=name, xticks=[], yticks=[])

# %% [markdown]
# At this large alpha mixup blurs the arms; k-mixup keeps them. Mixing does not beat ERM on this
# task. At a small alpha, or on data without such a shape, the three hardly differ: try
# `alpha = 0.2` above.
#
# Next: [the guide](guide/index.md), [frameworks](frameworks.md), or your own data on the command
# line, `kmixup inspect table.csv`.
