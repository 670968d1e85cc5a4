"""The commands behind `kmixup`, as typer reads them, one module for each."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import kmixup
from kmixup.lab.commands import (
    bench,
    calibrate,
    data,
    figures,
    inspect,
    league,
    predict,
    reproduce,
    sweep,
    train,
    tune,
)
from kmixup.lab.commands.running import INTERRUPTED


class _Commands(TyperGroup):
    """Says that a command was stopped where the command itself does not: typer is silent."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("kmixup: stopped", err=True)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=_Commands,
    help="k-mixup: mixup along optimal transport matchings.\n\n"
    "\b\n"
    "kmixup train --data iris --method kmixup --k 16   one run\n"
    "kmixup predict RUN new.csv                        what that network says of new data\n"
    "kmixup inspect table.csv --target species         which k and alpha for your data\n"
    "kmixup reproduce toy                              a table of the paper\n"
    "kmixup sweep grid.toml                            a grid of your own\n"
    "kmixup tune --data iris                           k and alpha for your data\n"
    "kmixup league iris cancer                         which method, at an equal budget\n"
    "kmixup figures --out out/figures                  the paper's figures, or yours\n"
    "kmixup calibrate mnist --k 16                     the alpha as strong as mixup's\n"
    "kmixup data list                                  what there is to train on\n"
    "kmixup bench cost                                 what mixing costs on this machine",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kmixup {kmixup.__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """What all commands share."""


app.command(help=train.HELP)(train.train)
app.command(help=predict.HELP)(predict.predict)
app.command(help=inspect.HELP)(inspect.inspect)
app.command(help=sweep.HELP)(sweep.sweep)
app.command(help=reproduce.HELP)(reproduce.reproduce)
app.command(help=tune.HELP)(tune.tune)
app.command(help=league.HELP)(league.league)
app.command(help=figures.HELP)(figures.figures)
app.command(help=calibrate.HELP)(calibrate.calibrate)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
