"""The commands ``fit`` and ``show``."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from dualtap.cli.app import DataFile, Force, Json, ModelFile, Quiet, Seed, command, print_outcome
from dualtap.cli.reading import ReadingOptions, reads_samples
from dualtap.cli.request import (
    Beta,
    Checkpoint,
    ChosenMethod,
    FitRequest,
    Hidden,
    Method,
    PatternsOption,
    Resume,
    StudentsOption,
    Updates,
)
from dualtap.cli.resampling import resampled

if TYPE_CHECKING:
    from dualtap.io import SampleFile
    from dualtap.report.material import Model
    from dualtap.resampling import Stability


@command(
    "dualtap fit data.npz -o model.npz",
    "dualtap fit votes.csv --labels party -o model.npz",
    "dualtap fit survey.csv --id respondent --drop age --true yes --false no -o model.npz",
    "dualtap fit configurations.csv --weights count -o model.npz",
    "dualtap fit genotypes.parquet --transpose -o model.npz",
    "dualtap fit data.npz --method dualtap --beta 2 --patterns 20 -o model.npz",
    "dualtap fit data.npz --method rbm --hidden 15 --checkpoint run.npz -o model.npz",
    "dualtap fit data.npz --resume run.npz -o model.npz",
    "dualtap fit data.zarr --dask tcp://scheduler:8786 -o model.npz",
)
@reads_samples
def fit(
    data: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write (.npz).", metavar="FILE")
    ],
    reading: ReadingOptions,
    method: ChosenMethod = None,
    patterns: PatternsOption = None,
    beta: Beta = None,
    students: StudentsOption = None,
    hidden: Hidden = None,
    updates: Updates = None,
    checkpoint: Checkpoint = None,
    resume: Resume = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Fit a .zarr store on a Dask cluster: address of the scheduler, or local.",
            metavar="ADDRESS",
        ),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover the patterns behind a file of binary samples."""
    from dualtap._files import check_free
    from dualtap.io import MODEL_FORMATS

    request = FitRequest(
        method or (Method.patterns if resume is None else Method.rbm),
        beta=beta,
        patterns=patterns,
        students=students,
        hidden=hidden,
        updates=updates,
        checkpoint=checkpoint,
        resume=resume,
    )
    request.check()
    check_free(output, force=force, formats=MODEL_FORMATS)
    if (checkpoint or resume) == output:
        raise ValueError(f"checkpoint and model cannot both be written to {str(output)!r}")
    with _cluster(dask):
        file = reading.read(data, on_workers=dask is not None)
        model = _fitted(request, file, seed, watched=not (quiet or as_json))
        _save(model, output, force=force)
        result, line = _outcome(model, file)
    print_outcome(result | {"file": str(output)}, line, as_json=as_json, quiet=quiet)


@command(
    "dualtap show model.npz",
    "dualtap show model.npz --data new.csv --json",
    "dualtap show model.npz --data digits.npz --labels label --report report.html",
)
@reads_samples
def show(
    model: ModelFile,
    reading: ReadingOptions,
    data: Annotated[
        Path | None,
        typer.Option(help="Samples to score and to assign to patterns.", metavar="FILE"),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(help="Height and width, if samples are images.", metavar="8x8"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a self-contained HTML report.", metavar="FILE")
    ] = None,
    refits: Annotated[
        int | None,
        typer.Option(
            help="Add the stability over this many refits to halves of --data to the report.",
            metavar="N",
            min=2,
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Print what a model has found, and its score on a file of samples."""
    from dualtap._files import check_free
    from dualtap.io import load, matched
    from dualtap.report.summary import drawn_magnetizations

    if reading.labels is not None and data is None:
        raise ValueError("--labels names a column of --data: give --data as well")
    if refits is not None and (data is None or report is None):
        raise ValueError("--refits needs --data and --report")
    if report is not None:
        check_free(report, force=force, formats=(".html", ".htm"))
    fitted = load(model)
    file = None
    if data is not None:
        file = matched(reading.read(data), fitted, data)
    picture = None if shape is None else _shape(shape, fitted.n_features_in_)
    result, line = _outcome(fitted, file, explained=True)
    if report is not None:
        found = None
        if refits is not None and file is not None:
            watched = not as_json
            found = resampled(fitted, file, refits, seed=0, jobs=1, top=1000, verbose=watched)
        _write_report(fitted, file, picture, report, found, force=force)
        result["report"] = str(report)
    pictures = None if picture is None else (drawn_magnetizations(fitted), picture)
    print_outcome(result, line, as_json=as_json, pictures=pictures)


def _cluster(address: str | None) -> AbstractContextManager[Any]:
    """Return a context that is connected to the Dask cluster, if there is one."""
    from dualtap.spins.dask_arrays import connected

    return nullcontext() if address is None else connected(address)


def _fitted(request: FitRequest, file: SampleFile, seed: int, *, watched: bool) -> Model:
    """Return the fitted model, with the names that the file has."""
    if watched:
        print(file.spins.summary, file=sys.stderr)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = request.fit(file, seed, verbose=watched)
    for warning in caught:
        print(f"dualtap: warning: {warning.message}", file=sys.stderr)
    if file.names is not None:
        model.feature_names_in_ = np.array(file.names, dtype=object)
    return model


def _save(model: Model, path: Path, *, force: bool) -> None:
    """Write the model; if that fails, write it to the folder of temporary files."""
    from dualtap.io import save

    try:
        save(model, path, force=force)
    except OSError as error:
        elsewhere = Path(tempfile.mkdtemp(prefix="dualtap-")) / path.name
        try:
            save(model, elsewhere)
        except OSError:
            raise error from None
        raise OSError(f"{error}; the model was written to {str(elsewhere)!r} instead") from None


def _outcome(
    model: Model, file: SampleFile | None, *, explained: bool = False
) -> tuple[dict[str, Any], str]:
    """Return what to print: the model, its score on the file, and the headline."""
    from dualtap.report.summary import against, agreement, describe, explain, headline

    result = describe(model)
    if file is not None and explained:
        result |= explain(model, file.spins, file.weights)
    if file is not None:
        result |= agreement(model, file.spins, file.label_columns, file.weights)
    if file is not None and file.teacher is not None:
        result |= against(model, file.teacher)
    return result, headline(result)


def _shape(text: str, n_spins: int) -> tuple[int, int]:
    """Return height and width of images."""
    from dualtap._validation import image_shape

    found = re.fullmatch(r"(\d+)[x×,](\d+)", text.strip())
    if found is None:
        raise ValueError(f"--shape {text!r} is not height x width, such as 8x8")
    return image_shape((int(found[1]), int(found[2])), n_spins)


def _write_report(
    model: Model,
    file: SampleFile | None,
    shape: tuple[int, int] | None,
    path: Path,
    stability: Stability | None,
    *,
    force: bool,
) -> None:
    from dualtap.report import write_report

    seen: dict[str, Any] = {}
    if file is not None:
        seen = {
            "spins": file.spins,
            "names": file.names,
            "sample_names": file.sample_names,
            "labels": None if file.labels is None else file.labels.tolist(),
            "teacher": file.teacher,
            "sample_weight": file.weights,
        }
    line = shlex.join(["dualtap", *sys.argv[1:]])
    write_report(model, path, **seen, shape=shape, stability=stability, command=line, force=force)
