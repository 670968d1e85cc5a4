"""`kmixup train`: one run."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kmixup.lab.commands.options import (
    DATA,
    DrawnSamples,
    Drop,
    Epochs,
    Limit,
    Model,
    Points,
    Rate,
    Resize,
    Scaling,
    ShiftLevels,
    Target,
    Task,
    Weights,
    grouped,
    height_and_width,
    say_account,
)
from kmixup.lab.commands.running import INTERRUPTED
from kmixup.lab.data import Dataset, load
from kmixup.lab.evaluate.baseline import beside, constant_answer, figures
from kmixup.lab.evaluate.shifts import SHIFTS
from kmixup.lab.experiments.rows import read_scores
from kmixup.lab.formatting import count
from kmixup.lab.train import checkpoint
from kmixup.lab.train.config import Method, Trial, shifts_from, variant_words
from kmixup.lab.train.defaults import defaults_for
from kmixup.lab.train.methods import METHODS, VARIANTS, choices
from kmixup.lab.train.record import CLEAN, training_note

WITHOUT_K = " and ".join(name for name, entry in METHODS.items() if not entry.has_k)

HELP = """Train a network and write down its test error.

Everything has a default: the network, the rate and the number of epochs are those of the
paper for the data set. The result is the last epoch's.

\b
Without any download:
  kmixup train --data four-bars --method kmixup --k 16
  kmixup train --data iris --method mixup --alpha 0.5 --epochs 50
The paper's comparison, in three runs:
  kmixup train --data mnist --method erm --epochs 3
  kmixup train --data mnist --method mixup --epochs 3
  kmixup train --data mnist --method kmixup --k 16 --alpha 1 --epochs 3
Other methods, as published with k = 1, and with optimal pairs:
  kmixup train --data mnist --method cutmix --k 1
  kmixup train --data mnist --method local --k 16
  kmixup train --data mnist --method manifold --k 16 --layers all-blocks
k beyond the batch, and other notions of near:
  kmixup train --data mnist --batch-size 16 --k 64 --memory 512
  kmixup train --data mnist --k 16 --labels 0.5
  kmixup train --data mnist --k 16 --match-on network
Your own data and network:
  kmixup train --data table.csv --target species --drop id
  kmixup train --data photos/ --model my_package.nets:small
Stopped? The same command goes on after the last whole epoch:
  kmixup train --data mnist --epochs 3 --resume
Few samples, and statistics of batch norm as the test needs them:
  kmixup train --data cifar10 --samples 5000 --model preact-resnet14 --clean-statistics
Robustness, two processes, a part of the data:
  kmixup train --data mnist --fgsm 8 --noise 16 --devices 2 --limit 5000
"""


@grouped
def train(
    data: Annotated[str, typer.Option(help=DATA)],
    model: Model = None,
    method: Annotated[str, typer.Option(help=f"{choices()}.")] = "kmixup",
    k: Annotated[
        int,
        typer.Option(
            help=f"Samples in a block; {WITHOUT_K} have none, the others are as published with 1."
        ),
    ] = 16,
    alpha: Annotated[float, typer.Option(help="lam ~ Beta(alpha, alpha); 0 mixes nothing.")] = 1.0,
    alpha_rule: Annotated[
        str,
        typer.Option(
            help="same: alpha as it is; xi: as strong as mixup with that alpha; root: the alpha "
            "that the paper's public script computes."
        ),
    ] = "same",
    pairing: Annotated[
        str,
        typer.Option(
            help="loaders: with a second order of the data; batch: inside a batch, as manifold "
            "always does; reshuffle: a batch with itself, as the paper's public script does."
        ),
    ] = "loaders",
    layers: Annotated[
        str | None,
        typer.Option(
            help="Of manifold: input+first-block (the default), all-blocks, deep-blocks, or "
            "modules with commas between, e.g. input,encoder.0."
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(help="Samples of earlier batches that fill up blocks: k beyond the batch."),
    ] = None,
    labels: Annotated[
        float | None,
        typer.Option(help="Cost of a pair of different classes, in mean distances; below 0 more."),
    ] = None,
    match_on: Annotated[
        str | None,
        typer.Option(
            help="pixels, pca:50 or pca-white:50 (components), network:5 or ema:5 (the features "
            "of the network, or of its moving average, every 5 epochs)."
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="Cost of a pair: sqeuclidean (the default) or euclidean."),
    ] = None,
    epochs: Epochs = None,
    rate: Rate = None,
    momentum: Annotated[float | None, typer.Option()] = None,
    weight_decay: Annotated[float | None, typer.Option()] = None,
    batch_size: Annotated[int | None, typer.Option()] = None,
    augment: Annotated[
        bool | None, typer.Option("--augment/--no-augment", help="Random crops and flips.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 or bf16.")] = None,
    warmup: Annotated[
        float | None, typer.Option(help="Share of the epochs in which the rate rises.")
    ] = None,
    test_every: Annotated[
        int | None, typer.Option(help="Epochs from one test and checkpoint to the next.")
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="channels_last: faster on most CPUs, for images.")
    ] = None,
    clean_statistics: Annotated[
        bool,
        typer.Option(
            "--clean-statistics",
            help="Compute the statistics of batch norm on clean samples at the end, test again.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the split, the weights and all draws.")] = 0,
    limit: Limit = None,
    samples: DrawnSamples = None,
    scaling: Scaling = None,
    size: Points = None,
    target: Target = None,
    drop: Drop = [],  # noqa: B006, typer copies it
    task: Task = None,
    resize: Resize = None,
    class_weights: Weights = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; by default one named after it in out/.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on after the last epoch.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    devices: Annotated[int, typer.Option(help="How many, each with a share of a batch.")] = 1,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write curves into the folder of the run.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
    *,
    shifts: ShiftLevels,  # type: ignore[valid-type]
) -> None:
    from kmixup.lab.train import record
    from kmixup.lab.train.loop import train as run

    mixing = Method(
        method, k, alpha, alpha_rule, pairing, layers,  # type: ignore[arg-type]
        memory=memory, labels=labels, match_on=match_on,
        metric=metric,  # type: ignore[arg-type]
    )  # fmt: skip
    sys.path.insert(0, os.getcwd())  # for models of one's own
    reading: dict[str, Any] = {
        "limit": limit, "samples": samples, "scaling": scaling, "size": size, "target": target,
        "drop": tuple(drop), "task": task, "resize": height_and_width(resize),
    }  # fmt: skip
    loaded = load(data, seed=seed, **reading)
    say_account(loaded)
    given = {
        "epochs": epochs, "rate": rate, "momentum": momentum, "weight_decay": weight_decay,
        "batch_size": batch_size, "augment": augment, "precision": precision,
        "warmup": warmup, "test_every": test_every, "layout": layout,
    }  # fmt: skip
    usual = defaults_for(data, loaded)
    protocol = replace(
        usual.protocol,
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )
    trial = Trial(
        data, model or usual.model, mixing, protocol, seed,
        shifts=shifts_from(vars(shifts)), clean_statistics=clean_statistics,
        class_weights=class_weights,  # type: ignore[arg-type]
        **reading,
    )  # fmt: skip
    folder = out or Path("out") / folder_name(trial)
    if resume and not (folder / checkpoint.NAME).is_file():
        typer.echo(f"nothing is saved in {folder} as yet: starting from the beginning", err=True)
    try:
        trained = run(
            trial, data=loaded, out=folder, resume=resume, device=device, devices=devices,
            progress=False if quiet else None, tensorboard=tensorboard,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(how_to_go_on(folder, protocol.epochs), err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(summary(trial, loaded, trained.record))
    typer.echo(f"model: kmixup predict {shlex.quote(str(folder))} NEW")
    typer.echo(f"record: {folder / record.NAME}")


def folder_name(trial: Trial) -> str:
    """Words of a run, and eight digits where settings of the data or of the classes differ.

    >>> folder_name(Trial("iris", "mlp-iris", Method("kmixup", k=16)))
    'iris-mlp-iris-kmixup-k16-alpha1-seed0'
    >>> folder_name(Trial("iris", "mlp-iris", Method("erm"), limit=50))
    'iris-mlp-iris-erm-seed0-limit50'
    >>> folder_name(Trial("own.csv", "mlp-iris", Method("erm"), drop=("id",)))
    'own.csv-mlp-iris-erm-seed0-9defbb69'
    """
    method = trial.method
    words = [Path(trial.data).name, trial.model.replace(":", "."), method.name]
    words += [f"k{method.k}"] * method.entry.has_k
    words += [f"alpha{method.alpha:g}"] * method.entry.has_alpha
    words += ["xi"] * (method.alpha_rule == "xi") + ["batch"] * (method.pairing == "batch")
    words += [] if method.layers is None else [method.layers]
    words += [
        value.replace(":", "-") if isinstance(value, str) else f"{name}-{value:g}"
        for name in VARIANTS
        if (value := getattr(method, name)) is not None
    ]
    words += [f"seed{trial.seed}"]
    words += [] if trial.limit is None else [f"limit{trial.limit}"]
    words += [] if trial.samples is None else [f"samples{trial.samples}"]
    told = Trial(
        trial.data, trial.model, method, seed=trial.seed, limit=trial.limit, samples=trial.samples
    )
    # the protocol and the shifts do not count: a folder that holds such a run is refused
    rest = replace(trial, protocol=told.protocol, shifts=())
    return "-".join([*words, *([] if rest == told else [rest.id[:8]])])


def how_to_go_on(folder: Path, epochs: int) -> str:
    """What to tell someone who stopped a run."""
    done = checkpoint.completed_epochs(folder / checkpoint.NAME)
    arguments = [word for word in sys.argv[1:] if word != "--resume"]
    again = shlex.join(["kmixup", *arguments, "--resume"])
    return f"stopped with {done} of {epochs} epochs saved in {folder}; go on with\n  {again}"


def summary(trial: Trial, data: Dataset, record: dict[str, Any]) -> str:
    """What came of a run, beside what a constant answer would give."""
    method, scores = trial.method, read_scores(record["result"])
    words = [method.name]
    words += [f"k={method.k}"] * method.entry.has_k
    words += [f"alpha={record['alpha']:.4g}"] * method.entry.has_alpha
    words += variant_words(method)
    measure = scores.measure
    lines = [
        f"{data.title}, {trial.model}, {' '.join(words)}: test {measure.name} "
        f"{measure.text(scores.error)} on {count(len(data.y_test), 'sample')}, "
        f"{', '.join(figures(scores))} "
        f"after {count(len(record['epochs']), 'epoch')} in {record['seconds']:.1f} s",
        f"training {measure.name} {measure.text(record['training']['error'])}",
        *beside(scores, constant_answer(data)),
    ]
    if note := training_note(record):
        lines.append(f"note: {note}")
    if CLEAN in record:
        clean = read_scores(record[CLEAN])
        lines.append(
            f"with clean statistics of batch norm, which the model keeps: test {measure.name} "
            f"{measure.text(clean.error)}"
        )
    elif trial.clean_statistics:
        lines.append(f"{trial.model} has no batch norm, so --clean-statistics changes nothing")
    for name, shift in SHIFTS.items():
        for level in record.get(name, ()):
            error = f"{level['error']:.2%}"
            lines.append(f"under {shift.title} of {level['eps']:g}/255: error {error}")
    return "\n".join(lines)
