"""The commands ``stability``, refits to random halves, and ``compare``, two groups of samples."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualtap.cli.app import (
    READ_FORMATS,
    DataFile,
    Force,
    Jobs,
    Json,
    ModelFile,
    Quiet,
    Seed,
    command,
    print_outcome,
)
from dualtap.cli.reading import ReadingOptions, reads_samples
from dualtap.cli.results import Table

if TYPE_CHECKING:
    from dualtap.comparison import Comparison
    from dualtap.io import SampleFile
    from dualtap.report.material import Model
    from dualtap.resampling import Stability

Refits = Annotated[
    int, typer.Option("--refits", "-n", help="Number of refits.", metavar="N", min=2)
]
GroupFile = Annotated[Path, typer.Argument(metavar="A", help=f"First group: {READ_FORMATS}.")]
OtherGroupFile = Annotated[
    Path, typer.Argument(metavar="B", help="Second group, with the same columns.")
]
PatternTable = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Also write one row per pattern: .csv, .tsv or .parquet.",
        metavar="FILE",
    ),
]


@command(
    "dualtap stability model.npz data.csv -o stability.csv",
    "dualtap stability model.npz votes.csv --labels party -n 100 -o bits.csv --edges edges.csv",
)
@reads_samples
def stability(
    model: ModelFile,
    data: DataFile,
    output: Table,
    reading: ReadingOptions,
    edges: Annotated[
        Path | None,
        typer.Option(
            help="Also write couplings with intervals: .csv, .tsv, .parquet or .graphml.",
            metavar="FILE",
        ),
    ] = None,
    refits: Refits = 50,
    top: Annotated[
        int, typer.Option(help="Number of couplings in --edges.", metavar="N", min=1)
    ] = 1000,
    jobs: Jobs = 1,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Refit the model to random parts of DATA, and write how often each entry is found again.

    One row per spin: its name, its entry in each pattern, and the share of refits to random halves
    that agree. Intervals of couplings are from refits to three quarters of the samples.
    """
    from dualtap._files import check_free
    from dualtap.io import EDGE_FORMATS, TABLE_FORMATS, load, matched, write_edges, write_table

    check_free(output, force=force, formats=TABLE_FORMATS)
    if edges is not None:
        check_free(edges, force=force, formats=EDGE_FORMATS)
        if edges == output:
            raise ValueError(f"entries and edges cannot both be written to {str(output)!r}")
    fitted = load(model)
    file = matched(reading.read(data), fitted, data)
    watched = not (quiet or as_json)
    found = resampled(fitted, file, refits, seed=seed, jobs=jobs, top=top, verbose=watched)
    write_table(output, found.bits, force=force)
    if edges is not None:
        write_edges(edges, found.edges, force=force)
    result: dict[str, Any] = {"refits": refits, "patterns_of_refits": _range(found)}
    table = {key: values.tolist() for key, values in found.patterns.items() if key != "pattern"}
    result |= {"n_patterns": len(found.entries), **table, "file": str(output)}
    if edges is not None:
        result["edges_file"] = str(edges)
    line = found.summary().split("\n", 1)[-1].split("\n")[0]
    print_outcome(result, line, as_json=as_json, quiet=quiet)


def resampled(
    model: Model, file: SampleFile, refits: int, *, seed: int, jobs: int, top: int, verbose: bool
) -> Stability:
    """Return the stability of a model; Ctrl-C ends the command, and nothing is written."""
    from dualtap.resampling import stability as refitted

    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": verbose}
    with _whole_or_nothing():
        return refitted(model, file.spins, refits, top=top, sample_weight=file.weights, **options)


def _compared(
    one: SampleFile,
    other: SampleFile,
    patterns: int | None,
    permutations: int,
    *,
    seed: int,
    jobs: int,
    verbose: bool,
) -> Comparison:
    """Fit both groups and return how they differ; Ctrl-C ends the command."""
    from dualtap.comparison import compare as permuted
    from dualtap.recovery import HopfieldPatterns

    options: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, "verbose": verbose}
    with _whole_or_nothing():
        a, b = (HopfieldPatterns(patterns, random_state=seed) for _ in range(2))
        a.fit(one.spins, sample_weight=one.weights)
        b.fit(other.spins, sample_weight=other.weights)
        options |= {"sample_weight_a": one.weights, "sample_weight_b": other.weights}
        return permuted(a, b, one.spins, other.spins, permutations, **options)


@contextmanager
def _whole_or_nothing() -> Iterator[None]:
    """End the command on Ctrl-C, before anything is written."""
    try:
        yield
    except KeyboardInterrupt:
        print("dualtap: interrupted; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None


def _range(found: Stability) -> str:
    few, many = int(found.n_patterns.min()), int(found.n_patterns.max())
    return str(few) if few == many else f"{few}–{many}"


@command(
    "dualtap compare women.csv men.csv",
    "dualtap compare a.csv b.csv --labels party --permutations 999 -o patterns.csv",
)
@reads_samples
def compare(
    first: GroupFile,
    second: OtherGroupFile,
    reading: ReadingOptions,
    output: PatternTable = None,
    patterns: Annotated[
        int | None,
        typer.Option(help="Number of patterns, if known.", metavar="P", min=1),
    ] = None,
    permutations: Annotated[
        int, typer.Option(help="Number of random permutations of the groups.", metavar="N", min=1)
    ] = 199,
    jobs: Jobs = 1,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test if two groups of samples have the same patterns and couplings.

    Columns of B are matched with those of A by name. P-values are from a permutation test.
    """
    from dualtap._files import check_free
    from dualtap.io import TABLE_FORMATS, write_table
    from dualtap.io.matching import in_order

    if output is not None:
        check_free(output, force=force, formats=TABLE_FORMATS)
    one, other = reading.read(first), reading.read(second)
    if one.names is not None:
        other = in_order(other, one.names, second, first)
    verbose = not (quiet or as_json)
    found = _compared(one, other, patterns, permutations, seed=seed, jobs=jobs, verbose=verbose)
    result: dict[str, Any] = {
        "p_any_difference": found.p_any,
        "p_difference_of_couplings": found.p_couplings,
        "permutations": permutations,
        "n_patterns": len(found.p_patterns),
        **{key: values.tolist() for key, values in found.patterns.items() if key != "pattern"},
    }
    if found.doubt:
        result["warning"] = found.doubt
        print(f"dualtap: warning: {found.doubt}", file=sys.stderr)
    if output is not None:
        write_table(output, found.patterns, force=force)
        result["file"] = str(output)
    print_outcome(result, found.summary().split("\n")[1], as_json=as_json, quiet=quiet)
