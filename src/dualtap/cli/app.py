"""The application that commands register with, the options they share, how results come out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dualtap._terminal import Pictures

app = typer.Typer(
    name="dualtap",
    help="Recover the hidden ±1 patterns behind binary data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FORMATS = ".npz, .npy, .csv, .tsv (also .gz), .parquet, .h5, .arrow or .zarr"
READ_FORMATS = FORMATS.replace(".arrow or .zarr", ".arrow, .zarr, .bed or .h5ad")

Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def print_outcome(
    result: dict[str, Any],
    headline: str,
    *,
    as_json: bool,
    quiet: bool = False,
    pictures: Pictures | None = None,
) -> None:
    """Print a result to stdout: JSON for machines, a table for people."""
    if as_json:
        print(json.dumps(result, indent=2))
    elif not quiet:
        from dualtap._terminal import print_result

        print_result(result, headline, pictures)
