"""Co-Mixup: a group of images makes as many collages, each cell of them taken from one image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional as F

from kmixup._batch import Batch
from kmixup._nests import Nest, over
from kmixup._randomness import uniforms
from kmixup.coefficient import Gamma, per_sample
from kmixup.interpolation import Interpolation, Mask, Pair, Region, Size
from kmixup.matching import Metric
from kmixup.matching._assignment import Floats, Indices, solve
from kmixup.methods._masks import importances_of_images
from kmixup.methods.kmixup import PairMixer
from kmixup.mixed import Mixed, PairDraw
from kmixup.targets import Criterion, TargetType

LABELS = 8  # images among which an output is sought; few more, if any, could be in the best one


@dataclass(frozen=True, eq=False)
class Collage(Mask):
    """Weights of all samples of the batch in the cells of every image, `(n, n, rows, columns)`."""


@dataclass(frozen=True, eq=False)
class SharedMixed(Mixed):
    """Collages of more than two samples; lam is the fraction of the sample itself."""

    @cached_property
    def shares(self) -> Tensor:
        """The weight of every sample's target in every row, `(n, n)`."""
        return cast(Collage, self.region).weight.mean((2, 3)).to(self.lam)

    @cached_property
    def y(self) -> Nest:
        own, one = (self.targets[0], self.targets[0]), torch.ones((), dtype=self.lam.dtype)
        classes, types = self.num_classes, self.types
        clean = Mixed(None, own, self.partner, one, num_classes=classes, types=types)

        def shared(soft: Any, kind: TargetType | None) -> Any:
            """Σ_j shares[i, j] · soft[j] in row i."""
            if kind == "pass":
                return soft
            dtype = torch.promote_types(soft.dtype, torch.float32)
            mixed: Tensor = torch.tensordot(self.shares.to(soft.device, dtype), soft.to(dtype), 1)
            return mixed.to(soft.dtype)

        return over(shared, clean.y, types)

    def loss(self, criterion: Criterion, logits: Any) -> Tensor:
        """Return Σ share · criterion(logits, target) over the samples that each row shows.

        The criterion must return one loss per sample (`reduction="none"`).
        """
        if self.targets[0] is None:
            raise ValueError("there are no targets to take a loss of: y was None")
        share, index = self.shares.sort(1, descending=True)
        losses = []
        for part in range(int((share > 0).sum(1).max())):  # as many as the fullest row has
            loss = criterion(logits, self._targets_of(index[:, part]))
            if loss.dim() == 0 or len(loss) != len(share):
                raise ValueError(
                    "the shares of targets differ between the samples of this batch, so the "
                    f"criterion must return one loss per sample, got shape {tuple(loss.shape)}: "
                    'use reduction="none", or the criterion on the mixed targets'
                )
            losses.append(per_sample(share[:, part], loss).to(loss.device) * loss)
        return torch.stack(losses).sum(0)

    def _targets_of(self, rows: Tensor) -> Nest:
        """Return the targets of other samples, those that are mixed."""

        def rows_of(y: Any, kind: TargetType | None) -> Any:
            return y if kind == "pass" else y[rows.to(y.device)]

        return over(rows_of, self.targets[0], self.types)

    def agreement(self, logits: Tensor) -> Tensor:
        y = self.targets[0]
        if not isinstance(y, Tensor):
            return super().agreement(logits)  # raises
        classes = y.argmax(1) if y.is_floating_point() else y
        agrees = logits.argmax(1)[:, None] == classes
        agreement: Tensor = (self.shares.to(logits.device) * agrees).sum(1)
        return agreement


@dataclass(frozen=True)
class CoMix(Interpolation):
    """The collages of Co-Mixup, with the published settings.

    m images of a group make m outputs, each of N cells that show one image. Outputs are optimised
    one after the other, in several rounds. Given the others, an output minimises

        Σ_cells [ -s_i - η/N log g_i + 2γ/N t(u_i) ] + β/N · (neighbours with different images)

    over the images i of its cells, exactly, among the eight most promising images. s is the
    saliency in the cell, with total 1 for each image, and g the weight that was drawn for the
    image. u = A n, where n counts the cells that the other outputs give to each image, and t(u) is
    u above `threshold` · N and 0 below. A is (1 - ω) · 1 + ω · D, with D the distances between the
    most salient cells of the images, scaled to the mean 1/m.

    From the second round on, cells may show two of the three images that the output shows most,
    half and half: a cell is a point z of a simplex, neighbours cost β/N |z - z'|²/2, and the
    minimum is exact, where the authors' code makes swap moves. In the last round, outputs that show
    the same images are driven apart: one pays γ/N for a cell of the first of them, the other for
    the second.

    Row i of the result is the output for sample i: outputs are ordered one-to-one so that samples
    have the greatest total fraction of their own.
    """

    dense: ClassVar[bool] = False

    beta: float = 0.32  # the cost of different images in neighbouring cells
    gamma: float = 1.0  # the cost of showing what other outputs of the group show already
    eta: float = 0.05  # the weight of the prior
    omega: float = 0.001  # the weight of distances between salient cells in what others show
    threshold: float = 0.83  # how many whole outputs of an image the others may show for free
    grid: int = 4  # the number of cells along a side
    group: int = 20  # the greatest number of images in a group
    rounds: int = 4  # how often every output is optimised

    def draw(self, n: int, shape: Size = (), generator: Generator | None = None) -> Tensor:
        """Draw which image every cell shows at the start, `(*size, grid, grid)`."""
        return uniforms((n, self.grid, self.grid), generator)

    def settle(self, lam: Tensor, spot: Tensor | None, pair: Pair) -> tuple[Tensor, Collage]:
        n = len(pair.partner)
        if pair.others is not pair.samples:
            raise ValueError(
                "CoMixup mixes the images of one batch, got partners from elsewhere: leave out "
                "other and Memory, or join both batches with torch.cat"
            )
        assert spot is not None
        importance, _ = importances_of_images(pair)
        height, width = importance.shape[1:]
        if height % self.grid or width % self.grid:
            raise ValueError(
                f"{pair.mixer} needs images whose height and width {self.grid} divides, got "
                f"{height} x {width}: resize them"
            )
        cell = height // self.grid, width // self.grid
        saliency = F.avg_pool2d(importance, cell).cpu().numpy() * (cell[0] * cell[1])
        prior = self.eta * np.log(np.maximum(lam.cpu().numpy(), np.finfo(float).tiny))

        cells = np.zeros((n, n, self.grid, self.grid), dtype=np.float32)
        groups = groups_of(pair.partner.cpu().numpy(), self.group)
        for size in {len(group) for group in groups}:
            rows = np.stack([group for group in groups if len(group) == size])
            cost = -saliency[rows] - prior[rows, None, None] / self.grid**2
            start = np.eye(size)[(spot.cpu().numpy()[rows] * size).astype(np.int64)]
            shown = self.collages(cost, self._use(saliency[rows]), start)
            outputs = solve(-shown.mean((2, 3)).swapaxes(1, 2))  # of every image
            shown = np.take_along_axis(shown, outputs[:, :, None, None, None], 1)
            cells[rows[:, :, None], rows[:, None]] = np.moveaxis(shown, -1, 2)
        weight = torch.from_numpy(cells)
        return weight.mean((2, 3)).diagonal(), Collage(weight.to(pair.samples[0].device))

    def _use(self, saliency: Floats) -> Floats:
        """Return A, `(groups, m, m)`: how much each image counts as used where others are."""
        count, size = saliency.shape[:2]
        peak = np.divmod(saliency.reshape(count, size, -1).argmax(-1), self.grid)
        far = sum(np.abs(place[:, :, None] - place[:, None]) for place in peak)
        total = np.maximum(np.sum(far, (1, 2), keepdims=True), 1)
        return np.asarray((1 - self.omega) * np.eye(size) + self.omega * far * size / total)

    def collages(self, cost: Floats, use: Floats, start: Floats) -> Floats:
        """Return what outputs show, `(groups, m, rows, columns, m)`, from those of `start`.

        `cost` is that of the images in every cell, `(groups, m, rows, columns)`, and `use` is A.
        """
        shown = start.copy()
        cost = np.moveaxis(cost, 1, -1)
        number = shown.shape[2] * shown.shape[3]
        total = shown.sum((1, 2, 3))  # cells of every image, in all outputs
        extra = np.zeros(shown.shape[:2] + shown.shape[-1:])
        for turn in range(self.rounds):
            if turn == self.rounds - 1:
                extra = self.gamma / number * repeats(shown.sum((2, 3)) > 0)
            for output in range(shown.shape[1]):
                total -= shown[:, output].sum((1, 2))
                used = (use @ total[..., None])[..., 0]
                price = 2 * self.gamma / number * used * (used > self.threshold * number)
                unary = cost + (price + extra[:, output])[:, None, None]
                shown[:, output] = best_output(unary, self.beta / number, halves=turn > 0)
                total += shown[:, output].sum((1, 2))
        return shown

    def __call__(
        self, x: Tensor, other: Tensor, partner: Tensor, lam: Tensor, region: Region = None
    ) -> Tensor:
        assert isinstance(region, Collage)
        dtype = torch.promote_types(x.dtype, torch.float32)
        weight = region.weight.to(x.device, dtype)
        height, width = (side // self.grid for side in x.shape[-2:])
        cells = x.to(dtype).reshape(len(x), -1, self.grid, height, self.grid, width)
        with torch.autocast(x.device.type, enabled=False):  # in full precision
            mixed = torch.einsum("ijrc,jdrhcw->idrhcw", weight, cells)
        return mixed.reshape(x.shape).to(x.dtype)


def best_output(unary: Floats, smooth: float, *, halves: bool = False) -> Floats:
    """Return what one output of every group shows, `(groups, rows, columns, m)`, at least cost.

    `unary` is the cost of every image in every cell, `(groups, rows, columns, m)`; neighbours
    cost `smooth` · |z - z'|²/2. With `halves` there is a second choice: among the images that are
    shown, and halves of two of the three that are shown most.
    """
    image = np.eye(unary.shape[-1])
    shown = _least_points(unary, image[promising(unary, smooth, LABELS)], smooth)
    if not halves:
        return shown
    count = shown.sum((1, 2))
    most = np.argsort(-count, -1, kind="stable")[:, : int((count > 0).sum(1).max())]
    whole = image[most]
    pairs = combinations(range(min(3, whole.shape[1])), 2)
    between = [(whole[:, i] + whole[:, j]) / 2 for i, j in pairs]
    if not between:
        return shown
    points = np.concatenate([whole, np.stack(between, 1)], 1)
    return _least_points(unary, points, smooth, among=count > 0)


def _least_points(
    unary: Floats, points: Floats, smooth: float, among: NDArray[np.bool_] | None = None
) -> Floats:
    """Return cells `(groups, rows, columns, m)`, each of them one of the `points` `(groups, p, m)`.

    Points with a part in images that are not `among` those of the group are left out.
    """
    cost = np.einsum("grcm,gpm->grcp", unary, points)
    if among is not None:
        barred = np.sum(points * ~among[:, None], -1) > 0
        cost = np.where(barred[:, None, None], np.inf, cost)
    apart = np.square(points[:, :, None] - points[:, None]).sum(-1) / 2
    labels = least_labels(cost, smooth * apart)
    return np.asarray(points[np.arange(len(points))[:, None, None], labels])


def least_labels(unary: Floats, apart: Floats) -> Indices:
    """Return the labels `(n, rows, columns)` of least total cost in cells and between neighbours.

    Cells are visited row by row. The cost of the rest depends only on the labels of the last
    `columns` cells, the *front*, so dynamic programming over all fronts is exact. It takes
    labels^columns numbers: few labels, and grids that are narrow.

    Args:
        unary: the cost of every label in every cell, `(n, rows, columns, labels)`.
        apart: the cost of two labels in neighbouring cells, `(n, labels, labels)`, symmetric.
    """
    n, rows, columns, labels = unary.shape
    alike = bool((apart == apart.max() * (1 - np.eye(labels))).all())
    least: Floats = np.zeros((n, 1))  # cost so far, by the labels of the front, oldest first
    fronts = []
    for row, column in np.ndindex(rows, columns):
        fronts.append(least)
        if row == 0:
            least = least[:, :, None]
        else:  # the oldest label of the front is that above, and leaves it
            above = least.reshape(n, labels, -1)
            if alike:  # the label above is that below, or the best of all
                best = above.min(1)[..., None] + apart.max()
                least = np.minimum(above.swapaxes(1, 2), best)
            else:
                least = (above[..., None] + apart[:, :, None]).min(1)
        least = least + unary[:, row, column, None]
        if column:
            least = least.reshape(n, -1, labels, labels) + apart[:, None]
        least = least.reshape(n, -1)

    chosen = np.empty((n, rows, columns), dtype=np.int64)
    number, front = np.arange(n), least.argmin(1)
    for row, column in reversed(list(np.ndindex(rows, columns))):
        front, chosen[:, row, column] = np.divmod(front, labels)
        if row:
            before = fronts.pop().reshape(n, labels, -1)[number, :, front]
            oldest = (before + apart[number, :, chosen[:, row, column]]).argmin(1)
            front = front + oldest * labels ** (columns - 1)
    return chosen


def promising(unary: Floats, apart: float, most: int) -> Indices:
    """Return labels that can be in a labelling of least cost, `(n, labels)`, at most `most`.

    Neighbours with different labels cost at most `apart`. So a label whose cost exceeds the least
    one of a cell by more than `apart` for each neighbour is never best there. Labels that are best
    nowhere are left out; rows are filled up to be equally long.
    """
    rows, columns = unary.shape[1:3]
    row, column = np.arange(rows)[:, None], np.arange(columns)
    borders = (row == 0).astype(int) + (row == rows - 1) + (column == 0) + (column == columns - 1)
    gap = unary - unary.min(-1, keepdims=True)
    excess = (gap - apart * (4 - borders)[..., None]).min((1, 2))
    count = int((excess <= 0).sum(1).max())
    return np.asarray(np.argsort(excess, 1, kind="stable")[:, : min(count, most)])


def repeats(shows: NDArray[np.bool_]) -> Floats:
    """Return what drives equal outputs apart, `(groups, m, m)`, from which images each shows.

    Of two outputs with the same two or more images, the earlier is marked at the first of these
    images and the later at the second.
    """
    size = shows.shape[1]
    agree: NDArray[np.bool_] = np.equal(shows[:, :, None], shows[:, None]).sum(-1) == size
    same = agree & np.triu(np.ones((size, size), bool), 1) & (shows.sum(-1) > 1)[:, :, None]
    first = shows & (shows.cumsum(-1) == 1)
    second = shows & (shows.cumsum(-1) == 2)
    earlier, later = (np.sum(same, axis)[..., None] > 0 for axis in (2, 1))
    return np.asarray(((first & earlier) | (second & later)).astype(float))


def groups_of(partner: Indices, most: int) -> list[Indices]:
    """Return groups of nearly equal size, at most `most`, on the way from partner to partner."""
    order, seen = [], set()
    for start in range(len(partner)):
        sample = start
        while sample not in seen:
            seen.add(sample)
            order.append(sample)
            sample = int(partner[sample])
    return np.array_split(np.array(order), -(-len(partner) // most))


class CoMixup(PairMixer):
    """Co-Mixup: mix all images of a group at once, so that each salient region is shown once.

    A batch is split into groups of at most 20 images, and each group makes as many collages of its
    images, in 4 x 4 cells. `k=1` is Co-Mixup as published (Kim et al. 2021, "Co-Mixup: Saliency
    Guided Joint Mixup with Supermodular Diversity"), with random groups. With a larger `k` partners
    are matched by optimal transport in blocks of k, and groups follow the chain of partners, so
    images of a group are similar.

    The target of an output is the mean of the targets of its cells. `SharedMixed.shares` has the
    fraction of every sample, `lam` that of the sample itself. Importance must be given, and 4 must
    divide the height and the width of the images. Partners come from the batch: there is no
    `other`. The published recipe adds the clean loss, which is `WithClean(CoMixup(...))`; without
    it the authors lower alpha. All rounds are always run, half-and-half labels have no bonus, and
    salient places are cells, not windows of 8 pixels.

    Args:
        k: the number of samples in a block.
        alpha: parameter of the Dirichlet prior over the images of a group.
        num_classes: the number of classes of integer targets, which become one-hot.
        metric: the cost of a pair, "sqeuclidean", "euclidean" or "cosine".
        targets: the types of targets where dtype and shape do not tell, see `Mixer`.
        prob: the probability that a batch is mixed at all.
        generator: source of all randomness, torch's global one by default.

    >>> mix = CoMixup(num_classes=10)
    >>> x, y = torch.rand(40, 3, 32, 32), torch.randint(10, (40,))
    >>> importance = torch.rand(40, 32, 32)    # kmixup.saliency(net, x, y)
    >>> x, y = mix(x, y, importance=importance)
    """

    interpolation = CoMix()

    def __init__(
        self,
        k: int = 1,
        alpha: float = 2.0,
        num_classes: Nest = None,
        *,
        metric: Metric = "sqeuclidean",
        targets: Nest = None,
        prob: float = 1.0,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(
            k, Gamma(alpha), num_classes,
            metric=metric, targets=targets, lam_per="sample", prob=prob, generator=generator,
        )  # fmt: skip

    def mix_pairs(self, batch: Batch, draw: PairDraw) -> Mixed:
        return super().mix_pairs(batch, draw).extended(SharedMixed)
