"""Commands that use a fitted model: ``predict``, ``impute``, ``couplings``, ``export``."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dualtap.cli.app import (
    DataFile,
    Force,
    Json,
    ModelFile,
    Quiet,
    SamplesOut,
    Seed,
    command,
    print_outcome,
)
from dualtap.cli.reading import ReadingOptions, reads_samples

Table = Annotated[
    Path,
    typer.Option("--output", "-o", help="Table to write: .csv, .tsv or .parquet.", metavar="FILE"),
]


@command(
    "dualtap predict model.npz new.csv -o rows.csv",
    "dualtap predict model.npz votes.csv --labels party -o rows.parquet",
)
@reads_samples
def predict(
    model: ModelFile,
    data: DataFile,
    output: Table,
    reading: ReadingOptions,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one row per sample: nearest pattern, overlaps, score, typicality.

    Columns of DATA are matched with the model by name.
    """
    from dualtap._files import check_free
    from dualtap.cli.tables import rows_table
    from dualtap.io import TABLE_FORMATS, load, matched, write_table

    check_free(output, force=force, formats=TABLE_FORMATS)
    fitted = load(model)
    file = matched(reading.read(data), fitted, data)
    n_samples = file.spins.n_samples
    known = np.arange(n_samples) if file.sample_names is None else np.array(file.sample_names)
    columns = {"sample": known}
    one = len(file.label_columns) == 1
    for name, labels in file.label_columns.items():
        columns["known_label" if one else f"known_{name}"] = labels
    write_table(output, columns | rows_table(fitted, file.spins), force=force)
    result = {"samples": n_samples, "file": str(output)}
    line = f"{_counted(n_samples, 'row')} written to {output}"
    print_outcome(result, line, as_json=as_json, quiet=quiet)


@command(
    "dualtap impute gaps.csv model.npz -o filled.csv",
    "dualtap impute gaps.parquet model.npz --seed 3 -o filled.parquet",
)
@reads_samples
def impute(
    data: DataFile,
    model: ModelFile,
    output: SamplesOut,
    reading: ReadingOptions,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fill missing entries of DATA with their most probable values given the rest of the row.

    Columns of DATA are matched with the model by name and keep their order. Values that were read
    with --true and --false are written with the same words.
    """
    from dualtap._files import check_free
    from dualtap.io import FORMATS as FILE_FORMATS
    from dualtap.io import load, matched, write_samples
    from dualtap.io.matching import with_gaps_filled

    check_free(output, force=force, formats=FILE_FORMATS)
    fitted = load(model)
    given = reading.read(data)
    filled = with_gaps_filled(given, matched(given, fitted, data), fitted, seed)
    beside: dict[str, Any] = dict(filled.label_columns)
    if reading.weights is not None and given.weights is not None:
        beside[reading.weights] = given.weights
    write_samples(
        output,
        filled.spins,
        names=filled.names,
        sample_names=filled.sample_names,
        labels=beside,
        parameters={"model": str(model), "seed": seed},
        spellings=reading.spellings,
        force=force,
    )
    n_filled = given.spins.n_missing
    result = {"filled": n_filled, "samples": given.spins.n_samples, "file": str(output)}
    line = f"{_counted(n_filled, 'missing entry', 'missing entries')} filled; written to {output}"
    print_outcome(result, line, as_json=as_json, quiet=quiet)


@command(
    "dualtap couplings model.npz -o edges.csv --top 1000",
    "dualtap couplings model.npz -o network.graphml --top 200",
)
def couplings(
    model: ModelFile,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Edges to write: .csv, .tsv, .parquet or .graphml.",
            metavar="FILE",
        ),
    ],
    top: Annotated[
        int | None, typer.Option(help="Number of couplings; all if omitted.", metavar="N", min=1)
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the couplings between pairs of spins, the strongest first, with 95 % intervals."""
    from dualtap._files import check_free
    from dualtap.io import EDGE_FORMATS, load, write_edges

    check_free(output, force=force, formats=EDGE_FORMATS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        edges = load(model).edges(top)
    write_edges(output, edges, force=force)
    result: dict[str, Any] = {"edges": len(edges), "file": str(output)}
    if caught:
        result["warning"] = str(caught[0].message)
        print(f"dualtap: warning: {caught[0].message}", file=sys.stderr)
    line = f"{_counted(len(edges), 'edge')} written to {output}"
    print_outcome(result, line, as_json=as_json, quiet=quiet)


@command(
    "dualtap export model.npz -o patterns.csv",
)
def export(
    model: ModelFile,
    output: Table,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one row per spin: name, field, and entry and confidence in each pattern."""
    from dualtap._files import check_free
    from dualtap.cli.tables import units_table
    from dualtap.io import TABLE_FORMATS, load, write_table

    check_free(output, force=force, formats=TABLE_FORMATS)
    fitted = load(model)
    write_table(output, units_table(fitted), force=force)
    n_units = fitted.n_features_in_
    result = {"n_spins": n_units, "n_patterns": fitted.n_patterns_, "file": str(output)}
    line = f"{_counted(n_units, 'spin')} written to {output}"
    print_outcome(result, line, as_json=as_json, quiet=quiet)


def _counted(n: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun, singular or plural."""
    return f"{n} {one if n == 1 else several or one + 's'}"
