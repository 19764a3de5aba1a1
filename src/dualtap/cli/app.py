"""The application that commands register with, the options they share, how results are printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

if TYPE_CHECKING:
    from dualtap.cli.terminal import Pictures

_ORDER = (
    *("demo", "dataset", "sample", "fit", "show", "predict", "impute", "couplings", "export"),
    *("stability", "compare", "reproduce", "bench"),
)


def _no_type(ctx: Any) -> None:
    """Return no type, where one is displayed."""


class _PlainHelp:
    """Help with flags and arguments without a type, arguments in capitals, as in other commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif isinstance(param, TyperArgument):
                setattr(param, "display_type_rich", _no_type)  # noqa: B010 (of this one only)
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.replace("{", "").replace("}", "") for piece in pieces]


class _Command(_PlainHelp, TyperCommand):
    pass


class _Group(_PlainHelp, TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(_ORDER)


app = typer.Typer(
    name="dualtap",
    cls=_Group,
    help="Recover the hidden ±1 patterns behind binary data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FORMATS = ".npz, .npy, .csv, .tsv (also .gz), .parquet, .h5, .arrow or .zarr"
READ_FORMATS = FORMATS.replace(".arrow or .zarr", ".arrow, .zarr, .bed or .h5ad")

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by `dualtap fit`.")
]
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=f"Samples: {READ_FORMATS}.")]
SamplesOut = Annotated[
    Path, typer.Option("--output", "-o", help=f"File to write: {FORMATS}.", metavar="FILE")
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed.", metavar="N", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Jobs = Annotated[int, typer.Option(help="Number of processes; -1: one per core.", metavar="N")]


def command(*examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator of a command, with examples at the end of its help."""
    lines = [f"Example{'s' if len(examples) > 1 else ''}:", *(f"  {line}" for line in examples)]
    return app.command(cls=_Command, epilog="\n".join(lines))


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
        from dualtap.cli.terminal import print_result

        print_result(result, headline, pictures)
