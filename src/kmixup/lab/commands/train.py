"""`kmixup train`: one run."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kmixup.lab import checkpoint
from kmixup.lab.commands.options import DATA, Limit, Model, Points, Scaling, Target
from kmixup.lab.data import Dataset, load
from kmixup.lab.prepare import usual_for
from kmixup.lab.protocol import Method, Trial, paper_protocol
from kmixup.lab.words import count

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
Your own data and network:
  kmixup train --data table.csv --target species
  kmixup train --data photos/ --model my_package.nets:small
Stopped? The same command goes on after the last whole epoch:
  kmixup train --data mnist --epochs 3 --resume
Robustness, two processes, a part of the data:
  kmixup train --data mnist --fgsm 8 --noise 16 --devices 2 --limit 5000
"""


def train(
    data: Annotated[str, typer.Option(help=DATA)],
    model: Model = None,
    method: Annotated[
        str, typer.Option(help="erm, mixup, kmixup, nearest, manifold, cutmix or local.")
    ] = "kmixup",
    k: Annotated[
        int,
        typer.Option(
            help="Samples in a block; erm and mixup have none, manifold, cutmix and local are "
            "as published with 1."
        ),
    ] = 16,
    alpha: Annotated[float, typer.Option(help="lam ~ Beta(alpha, alpha); 0 mixes nothing.")] = 1.0,
    alpha_rule: Annotated[
        str, typer.Option(help="same: alpha as it is; xi: as strong as mixup with that alpha.")
    ] = "same",
    pairing: Annotated[
        str,
        typer.Option(
            help="loaders: with a second order of the data; batch: inside a batch, as manifold "
            "always does."
        ),
    ] = "loaders",
    layers: Annotated[
        str | None,
        typer.Option(
            help="Of manifold: input+first-block (the default), all-blocks, deep-blocks, or "
            "modules with commas between, e.g. input,encoder.0."
        ),
    ] = None,
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
    limit: Limit = None,
    scaling: Scaling = None,
    size: Points = None,
    target: Target = None,
    noise: Annotated[
        list[float], typer.Option(help="Also test under Gaussian noise of EPS/255.", metavar="EPS")
    ] = [],  # noqa: B006, typer copies it
    fgsm: Annotated[
        list[float], typer.Option(help="Also test under an attack of EPS/255.", metavar="EPS")
    ] = [],  # noqa: B006
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

    mixing = Method(method, k, alpha, alpha_rule, pairing, layers)  # type: ignore[arg-type]
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
    kind, usual = usual_for(data, loaded)
    protocol = replace(
        paper_protocol(data, kind),
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )
    trial = Trial(
        data, model or usual, mixing, protocol, seed, limit, scaling, size, target,
        noise=tuple(noise), fgsm=tuple(fgsm),
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
        raise typer.Exit(130) from None
    typer.echo(summary(trial, loaded, trained.record))
    typer.echo(f"record: {folder / record.NAME}")


def folder_name(trial: Trial) -> str:
    """
    >>> folder_name(Trial("iris", "mlp-iris", Method("kmixup", k=16)))
    'iris-mlp-iris-kmixup-k16-alpha1-seed0'
    """
    method = trial.method
    words: list[str] = [Path(trial.data).name, trial.model.replace(":", "."), method.name]
    words += [f"k{method.k}"] * method.has_k
    words += [f"alpha{method.alpha:g}"] * (method.name != "erm")
    words += ["xi"] * (method.alpha_rule == "xi") + ["batch"] * (method.pairing == "batch")
    words += [] if method.layers is None else [method.layers]
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
    words += [f"k={method.k}"] * method.has_k
    words += [f"alpha={record['alpha']:.4g}"] * (method.name != "erm")
    lines = [
        f"{data.title}, {trial.model}, {' '.join(words)}: test error {result['error']:.2%}, "
        f"nll {result['nll']:.4f}, ece {result['ece']:.4f} "
        f"after {count(len(record['epochs']), 'epoch')} in {record['seconds']:.1f} s"
    ]
    for name, words_for in (("noise", "Gaussian noise"), ("fgsm", "FGSM")):
        for found in record.get(name, ()):
            lines.append(f"under {words_for} of {found['eps']:g}/255: error {found['error']:.2%}")
    return "\n".join(lines)
