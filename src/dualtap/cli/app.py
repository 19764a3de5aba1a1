"""The application that commands register with, the options they share, how results come out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dualtap._terminal import Pictures
    from dualtap.io import SampleFile

app = typer.Typer(
    name="dualtap",
    help="Recover the hidden ±1 patterns behind binary data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FORMATS = ".npz, .npy, .csv, .tsv (also .gz), .parquet, .h5, .arrow or .zarr"

Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Labels = Annotated[
    str | None,
    typer.Option(help="Column (or array) kept for evaluation, never fitted.", metavar="COLUMN"),
]
Transpose = Annotated[
    bool, typer.Option("--transpose", help="Rows of the file are spins, columns are samples.")
]
ZeroIsMissing = Annotated[
    bool, typer.Option("--zero-is-missing", help="In -1/+1 data, 0 marks a missing entry.")
]
AllowExpansion = Annotated[
    bool,
    typer.Option("--allow-expansion", help="Read a file that unpacks to 200 times its size."),
]


def read(
    path: Path,
    labels: str | None,
    transpose: bool,
    zero_is_missing: bool,
    *,
    on_workers: bool = False,
    allow_expansion: bool = False,
) -> SampleFile:
    """Return what a sample file holds; a mistake in an option is told in terms of options."""
    from dualtap.io import read_samples

    try:
        return read_samples(
            path,
            labels=labels,
            transpose=transpose,
            zero_is_missing=zero_is_missing,
            on_workers=on_workers,
            allow_expansion=allow_expansion,
        )
    except ValueError as error:
        message = str(error)
        for option in ("zero_is_missing", "allow_expansion"):
            message = message.replace(f"{option}=True", f"--{option.replace('_', '-')}")
        raise ValueError(message) from None


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
