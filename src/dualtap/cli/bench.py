"""The command that compares ours with its peers."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from dualtap.cli.app import Quiet, app

_COMPARISONS = ("recovery", "couplings", "rbm", "sampling")


def _names(incomplete: str) -> list[str]:
    return [name for name in _COMPARISONS if name.startswith(incomplete)]


@app.command(
    epilog="Examples: dualtap bench --quick · dualtap bench sampling · "
    "dualtap bench recovery --runs 5 --out comparison"
)
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="recovery, couplings, rbm or sampling; all by default.", autocompletion=_names
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A smaller grid, one run of each: a few minutes.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(help="Runs of every contender in every case.", min=1)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the tables and the pictures.")] = Path(
        "results/bench"
    ),
    quiet: Quiet = False,
) -> None:
    """Compare with peers, each in an environment of its own; needs a checkout of dualtap."""
    written = _against().run(names or (), quick=quick, runs=runs, out=out, verbose=not quiet)
    if not quiet:
        print("\n".join(map(str, written)))


def _against() -> Any:
    """Return the comparisons of the checkout in the current folder: they are not installed."""
    here = Path.cwd()
    if not (here / "benchmarks" / "against" / "__init__.py").exists():
        raise FileNotFoundError(
            "the benchmarks are not installed with dualtap: run this in the folder of a checkout"
        )
    sys.path.insert(0, str(here))
    return import_module("benchmarks.against")
