"""The commands behind `kmixup`, as typer reads them: `train` and `data`."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kmixup.lab import checkpoint
from kmixup.lab.data import ENTRIES, Dataset, Entry, at_hand, fetch_dataset, load
from kmixup.lab.protocol import Method, Trial, paper_protocol

app = typer.Typer(
    help="k-mixup: mixup along optimal transport matchings.\n\n"
    "\b\nkmixup train --data iris --method kmixup --k 16\nkmixup data list",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(
    help="The data sets: what there is, at hand or not, and where it comes from.\n\n"
    "\b\nkmixup data list\nkmixup data info mnist\nkmixup data fetch mnist",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(data_app, name="data")

TRAIN_HELP = """Train a network and write down its test error.

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
Your own data and network:
  kmixup train --data table.csv --target species
  kmixup train --data photos/ --model my_package.nets:small
Stopped? The same command goes on after the last whole epoch:
  kmixup train --data mnist --epochs 3 --resume
Robustness, two processes, a part of the data:
  kmixup train --data mnist --fgsm 8 --noise 16 --devices 2 --limit 5000
"""


@app.command(help=TRAIN_HELP)
def train(
    data: Annotated[
        str, typer.Option(help="A name from `kmixup data list`, or a .npz, a .csv or a folder.")
    ],
    model: Annotated[
        str | None, typer.Option(help="A name, or package.module:function of your own.")
    ] = None,
    method: Annotated[str, typer.Option(help="erm, mixup, kmixup or nearest.")] = "kmixup",
    k: Annotated[int, typer.Option(help="Samples in a block; erm and mixup have none.")] = 16,
    alpha: Annotated[float, typer.Option(help="lam ~ Beta(alpha, alpha); 0 mixes nothing.")] = 1.0,
    alpha_rule: Annotated[
        str, typer.Option(help="same: alpha as it is; xi: as strong as mixup with that alpha.")
    ] = "same",
    pairing: Annotated[
        str, typer.Option(help="loaders: with a second order of the data; batch: inside a batch.")
    ] = "loaders",
    epochs: Annotated[int | None, typer.Option(help="The rate's milestones move along.")] = None,
    rate: Annotated[float | None, typer.Option(help="The first learning rate.")] = None,
    momentum: Annotated[float | None, typer.Option()] = None,
    weight_decay: Annotated[float | None, typer.Option()] = None,
    batch_size: Annotated[int | None, typer.Option()] = None,
    augment: Annotated[
        bool | None, typer.Option("--augment/--no-augment", help="Random crops and flips.")
    ] = None,
    precision: Annotated[str | None, typer.Option(help="fp32 or bf16.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split, the weights and all draws.")] = 0,
    limit: Annotated[
        int | None, typer.Option(help="Only the first samples, this many of each part.")
    ] = None,
    scaling: Annotated[
        str | None, typer.Option(help="paper, standard, minmax, symmetric or none.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Points of a toy.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The column of a .csv with the classes.")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="Also test under Gaussian noise of EPS/255.", metavar="EPS")
    ] = None,
    fgsm: Annotated[
        float | None, typer.Option(help="Also test under an attack of EPS/255.", metavar="EPS")
    ] = None,
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
) -> None:
    from kmixup.lab import record
    from kmixup.lab.train import train as run

    mixing = Method(method, k, alpha, alpha_rule, pairing)  # type: ignore[arg-type]
    sys.path.insert(0, os.getcwd())  # for models of one's own
    loaded = load(
        data,
        limit=limit,
        scaling=scaling,  # type: ignore[arg-type]
        seed=seed,
        size=size,
        target=target,
    )
    given = {
        "epochs": epochs, "rate": rate, "momentum": momentum, "weight_decay": weight_decay,
        "batch_size": batch_size, "augment": augment, "precision": precision,
    }  # fmt: skip
    protocol = replace(
        paper_protocol(data, kind_of(data, loaded)),
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )
    chosen = model or default_model(data, loaded)
    trial = Trial(data, chosen, mixing, protocol, seed, limit, scaling, size, target)
    folder = out or Path("out") / folder_name(trial)
    if resume and not (folder / checkpoint.NAME).is_file():
        typer.echo(f"nothing is saved in {folder} as yet: starting from the beginning", err=True)
    try:
        trained = run(
            trial, data=loaded, out=folder, resume=resume, device=device, devices=devices,
            progress=False if quiet else None, tensorboard=tensorboard, noise=noise, fgsm=fgsm,
        )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo(how_to_go_on(folder, protocol.epochs), err=True)
        raise typer.Exit(130) from None
    typer.echo(summary(trial, loaded, trained.record))
    typer.echo(f"record: {folder / record.NAME}")


def kind_of(name: str, data: Dataset) -> str:
    """The kind of a data set, which chooses its protocol; of the user's own, by its shape."""
    if name in ENTRIES:
        return ENTRIES[name].kind
    if len(data.shape) == 1:
        return "table"
    return "image" if data.pixel_range is not None else "speech"


def default_model(name: str, data: Dataset) -> str:
    """The paper's network for a data set, or one for its shape."""
    kind = kind_of(name, data)
    if kind == "toy":
        return "mlp-toy"
    if kind == "table":
        return f"mlp-{name}" if name in ENTRIES else "mlp-phishing"
    return "lenet" if data.shape[0] == 1 else "preact-resnet18"


def folder_name(trial: Trial) -> str:
    """
    >>> folder_name(Trial("iris", "mlp-iris", Method("kmixup", k=16)))
    'iris-mlp-iris-kmixup-k16-alpha1-seed0'
    """
    method = trial.method
    words: list[str] = [Path(trial.data).name, trial.model.replace(":", "."), method.name]
    words += [f"k{method.k}"] * (method.name in ("kmixup", "nearest"))
    words += [f"alpha{method.alpha:g}"] * (method.name != "erm")
    words += ["xi"] * (method.alpha_rule == "xi") + ["batch"] * (method.pairing == "batch")
    return "-".join([*words, f"seed{trial.seed}"])


def how_to_go_on(folder: Path, epochs: int) -> str:
    """What to tell someone who stopped a run."""
    done = checkpoint.completed_epochs(folder / checkpoint.NAME)
    arguments = [word for word in sys.argv[1:] if word != "--resume"]
    again = shlex.join(["kmixup", *arguments, "--resume"])
    return f"stopped with {done} of {epochs} epochs saved in {folder}; go on with\n  {again}"


def summary(trial: Trial, data: Dataset, record: dict[str, Any]) -> str:
    method, result = trial.method, record["result"]
    words: list[str] = [method.name]
    words += [f"k={method.k}"] * (method.name in ("kmixup", "nearest"))
    words += [f"alpha={record['alpha']:.4g}"] * (method.name != "erm")
    lines = [
        f"{data.title}, {trial.model}, {' '.join(words)}: test error {result['error']:.2%}, "
        f"nll {result['nll']:.4f}, ece {result['ece']:.4f} "
        f"after {len(record['epochs'])} epochs in {record['seconds']:.1f} s"
    ]
    for name, words_for in (("noise", "Gaussian noise"), ("fgsm", "FGSM")):
        if name in record:
            found = record[name]
            lines.append(f"under {words_for} of {found['eps']:g}/255: error {found['error']:.2%}")
    return "\n".join(lines)


@data_app.command("list")
def list_data() -> None:
    """All data sets that have a name, and whether they are at hand."""
    rows = [("NAME", "KIND", "TRAIN", "TEST", "CLASSES", "SHAPE", "AT HAND")]
    for name, entry in ENTRIES.items():
        shape = "×".join(map(str, entry.shape))
        counts = (f"{entry.train:,}", f"{entry.test:,}", f"{entry.classes}")
        rows.append((name, entry.kind, *counts, shape, _presence(name)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        typer.echo("  ".join(cells).rstrip())


@data_app.command("info")
def info(name: Annotated[str, typer.Argument(help="A name from `kmixup data list`.")]) -> None:
    """Where a data set comes from, how large it is, its checksums and its licence."""
    at_hand(name)  # refuses a name that is none
    entry = ENTRIES[name]
    typer.echo(f"{entry.title} ({name})")
    shape = "×".join(map(str, entry.shape))
    typer.echo(f"  samples  {entry.train:,} to train, {entry.test:,} to test")
    typer.echo(f"  inputs   {shape} ({entry.kind}), {entry.classes} classes")
    typer.echo(f"  scaling  {entry.paper or 'standard'}{_scaling_note(entry)}")
    typer.echo(f"  licence  {entry.licence}")
    typer.echo(f"  source   {entry.source}")
    typer.echo(f"  at hand  {_presence(name)}")
    for remote in entry.remotes:
        size = "size unknown" if remote.size is None else _bytes(remote.size)
        typer.echo(f"  file     {remote.url} ({size})")
        checksum = "" if remote.checksum is None else f"{remote.checksum}, "
        typer.echo(f"           {checksum}{remote.published}")


@data_app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="A name from `kmixup data list`.")],
    into: Annotated[
        Path | None, typer.Option(help="A folder to be KMIXUP_DATA, in place of the cache.")
    ] = None,
) -> None:
    """Download a data set, verify it and keep it in the cache."""
    typer.echo(f"{name} is in {fetch_dataset(name, into=into)}")


def _presence(name: str) -> str:
    if at_hand(name):
        return "yes"
    return "a part (use --limit)" if at_hand(name, limit=1) else "no"


def _bytes(size: int) -> str:
    """
    >>> _bytes(9_912_422), _bytes(4_542)
    ('9.9 MB', '4.5 kB')
    """
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"


def _scaling_note(entry: Entry) -> str:
    return ", as the paper's xi imply" if entry.paper else ", the paper's is not known"
