"""The command ``bench``: comparisons with other packages."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated, Any

import typer

from dualtap.cli.app import Quiet, command

_COMPARISONS = ("recovery", "couplings", "rbm", "sampling")


def _names(incomplete: str) -> list[str]:
    return [name for name in _COMPARISONS if name.startswith(incomplete)]


@command(
    "dualtap bench --quick",
    "dualtap bench sampling",
    "dualtap bench recovery --runs 5 --out comparison",
)
def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="recovery, couplings, rbm or sampling; all if omitted.",
            metavar="NAME",
            autocompletion=_names,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer cases, one run each: a few minutes.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(help="Runs per method and case.", metavar="N", min=1)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables and figures.", metavar="DIR")] = Path(
        "results/bench"
    ),
    quiet: Quiet = False,
) -> None:
    """Compare with other packages, each in its own environment; needs a source checkout."""
    written = _against().run(names or (), quick=quick, runs=runs, out=out, verbose=not quiet)
    if not quiet:
        print("\n".join(map(str, written)))


def _against() -> Any:
    """Return the comparisons of the checkout in the current folder, which are not installed.

    Only the package ``benchmarks`` is found there; ``sys.path`` stays as it is.
    """
    package = Path.cwd() / "benchmarks"
    if not (package / "against" / "__init__.py").exists():
        raise FileNotFoundError(
            "the benchmarks are not installed with dualtap: run this command in a source checkout"
        )
    spec = spec_from_file_location(
        "benchmarks", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["benchmarks"] = module
    spec.loader.exec_module(module)
    return import_module("benchmarks.against")
