"""The ``dualtap`` command: thin calls into the library.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 bad usage or
input.
"""

from __future__ import annotations

import json
import sys
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer

from dualtap._fitting import Method, Request

app = typer.Typer(
    name="dualtap",
    help="Recover the hidden ±1 patterns behind binary data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no summary.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


class StartChoice(StrEnum):
    """Where the chains of ``sample`` start."""

    auto = "auto"
    patterns = "patterns"
    random = "random"
    annealed = "annealed"


def main() -> NoReturn:
    """Run the command; one line on stderr and a code for whatever goes wrong."""
    try:
        app()
    except (ValueError, TypeError, FileExistsError, FileNotFoundError, IsADirectoryError) as error:
        _fail(error, 2)
    except (OSError, MemoryError) as error:
        _fail(error, 1)
    sys.exit(0)


def _fail(error: BaseException, code: int) -> NoReturn:
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        message = f"there is no file {error.filename!r}"
    print(f"dualtap: {message}", file=sys.stderr)
    sys.exit(code)


def _version(requested: bool) -> None:
    if requested:
        from dualtap import __version__

        print(f"dualtap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: dualtap demo --seed 3 --output my.png")
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to save the picture.")
    ] = Path("demo.png"),
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Hide twenty patterns, draw two hundred samples, recover the patterns, draw a picture.

    Nothing but the samples is given to the recovery: neither the number of patterns nor the
    temperature.
    """
    from dualtap._files import atomic_write, check_free
    from dualtap._summary import against, describe, headline
    from dualtap.hopfield import HopfieldModel
    from dualtap.plots import check_format, recovery_figure
    from dualtap.recovery import DualTAP

    picture_format = check_format(output)
    check_free(output, force=force)
    watched = not (quiet or as_json)
    n_samples = 200
    teacher = HopfieldModel.random(n_spins=1000, n_patterns=20, beta=2.0, random_state=seed)
    X = teacher.sample(n_samples, random_state=seed + 1, verbose=watched)
    model = DualTAP(random_state=seed, verbose=watched).fit(X)
    figure = recovery_figure(model, teacher, n_samples)
    with atomic_write(output, force=force) as file:
        figure.savefig(file, format=picture_format, dpi=150)
    result = describe(model) | against(model, teacher) | {"picture": str(output)}
    _report(result, headline(result), as_json, quiet)


@app.command(
    epilog="Example: dualtap sample --spins 1000 --patterns 20 --beta 2 --samples 200 -o data.npz"
)
def sample(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write: .npz, .npy, .csv or .tsv.")
    ],
    spins: Annotated[int, typer.Option(help="Number of spins N.", min=2)] = 1000,
    patterns: Annotated[int, typer.Option(help="Number of patterns P.", min=1)] = 20,
    beta: Annotated[float, typer.Option(help="Inverse temperature.")] = 2.0,
    samples: Annotated[int, typer.Option(help="Number of samples M.", min=1)] = 200,
    sweeps: Annotated[int, typer.Option(help="Sweeps a chain makes.", min=0)] = 100,
    start: Annotated[StartChoice, typer.Option(help="Where chains start.")] = StartChoice.auto,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw samples from a random Hopfield teacher; an .npz keeps the teacher beside them."""
    from dualtap._files import check_free
    from dualtap.hopfield import HopfieldModel
    from dualtap.io import FORMATS, write_samples

    check_free(output, force=force, formats=FORMATS)
    teacher = HopfieldModel.random(spins, patterns, beta, random_state=seed)
    X = teacher.sample(
        samples,
        start=start.value,
        n_sweeps=sweeps,
        random_state=seed + 1,
        verbose=not (quiet or as_json),
    )
    parameters = {
        "spins": spins,
        "patterns": patterns,
        "beta": beta,
        "samples": samples,
        "sweeps": sweeps,
        "start": start.value,
        "seed": seed,
    }
    write_samples(output, X, teacher=teacher, parameters=parameters, force=force)
    done = f"{samples} samples of {spins} spins written to {output}"
    _report(parameters | {"file": str(output)}, done, as_json, quiet)


@app.command(
    epilog="Examples: dualtap fit data.npz -o model.npz · "
    "dualtap fit votes.csv --method paper --beta 2 --patterns 20 -o model.npz · "
    "dualtap fit data.npz --method rbm --hidden 15 --checkpoint run.npz -o model.npz · "
    "dualtap fit data.npz --resume run.npz -o model.npz"
)
def fit(
    data: Annotated[Path, typer.Argument(help="Samples: .npz, .npy, .csv or .tsv.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")],
    method: Annotated[
        Method | None,
        typer.Option(
            help="tap (default): nothing need be known. paper: the published algorithm. "
            "rbm: a Gaussian RBM trained by PCD-10."
        ),
    ] = None,
    patterns: Annotated[
        int | None, typer.Option(help="tap, paper: number of patterns, if known.", min=1)
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Inverse temperature, if known.")] = None,
    effort: Annotated[
        int | None,
        typer.Option(help="tap: multiplies the starts, for hard data; 1 if not given.", min=1),
    ] = None,
    students: Annotated[
        int | None,
        typer.Option(help="paper: students of a round, and most rounds without --patterns.", min=1),
    ] = None,
    hidden: Annotated[int | None, typer.Option(help="rbm: number of hidden units.", min=1)] = None,
    updates: Annotated[int | None, typer.Option(help="rbm: most updates made.", min=1)] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="rbm: file (.npz) that keeps the run every few seconds.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="rbm: go on with the run in this file, and keep it there."),
    ] = None,
    zero_is_missing: Annotated[
        bool, typer.Option("--zero-is-missing", help="In -1/+1 data, 0 marks a missing entry.")
    ] = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover the patterns behind a file of binary samples."""
    from dualtap._files import check_free
    from dualtap._summary import against, describe, headline
    from dualtap.io import MODEL_FORMATS, read_samples, save
    from dualtap.spins import as_spins

    request = Request(
        method or (Method.tap if resume is None else Method.rbm),
        beta=beta,
        patterns=patterns,
        effort=effort,
        students=students,
        hidden=hidden,
        updates=updates,
        checkpoint=checkpoint,
        resume=resume,
    )
    request.check()
    check_free(output, force=force, formats=MODEL_FORMATS)
    if (checkpoint or resume) == output:
        raise ValueError(f"the run and the model cannot both be kept in {str(output)!r}")
    file = read_samples(data)
    spins = as_spins(file.X, zero_is_missing=zero_is_missing)
    watched = not (quiet or as_json)
    if watched:
        print(spins.summary, file=sys.stderr)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = request.fit(spins, file.teacher, seed, verbose=watched)
    for warning in caught:
        print(f"dualtap: warning: {warning.message}", file=sys.stderr)
    if file.names is not None:
        model.feature_names_in_ = np.array(file.names, dtype=object)
    save(model, output, force=force)
    result = describe(model) | {"file": str(output)}
    if file.teacher is not None:
        result |= against(model, file.teacher)
    _report(result, headline(result), as_json, quiet)


@app.command(
    epilog="Examples: dualtap show model.npz · dualtap show model.npz --data new.csv --json"
)
def show(
    model: Annotated[Path, typer.Argument(help="Model file written by `dualtap fit`.")],
    data: Annotated[
        Path | None, typer.Option(help="Samples to score and assign with the model.")
    ] = None,
    zero_is_missing: Annotated[
        bool, typer.Option("--zero-is-missing", help="In -1/+1 data, 0 marks a missing entry.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print what a model has found, and how well it explains a file of samples."""
    from dualtap._summary import against, describe, explain, headline
    from dualtap.io import load, read_samples
    from dualtap.spins import as_spins

    fitted = load(model)
    result = describe(fitted)
    if data is not None:
        file = read_samples(data)
        result |= explain(fitted, as_spins(file.X, zero_is_missing=zero_is_missing))
        if file.teacher is not None:
            result |= against(fitted, file.teacher)
    _report(result, headline(result), as_json, quiet=False)


@app.command(
    epilog="Examples: dualtap reproduce fig2 · dualtap reproduce all · "
    "dualtap reproduce fig4 --full --jobs 8 · dualtap reproduce fig4 --export fig4.csv"
)
def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments (fig2, …), all, or claims for the verdicts.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the store and the figures.")] = Path(
        "results"
    ),
    full: Annotated[
        bool, typer.Option("--full/--quick", help="The paper's sizes and counts, or fewer trials.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one a core.")] = -1,
    dask: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, or: local.")
    ] = None,
    export_to: Annotated[
        Path | None,
        typer.Option("--export", help="Write the trials to this .csv or .parquet file as well."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Make trials again; overwrite the exported file.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce figures and claims of the paper; what is done already is not done again."""
    from dualtap._files import check_free
    from dualtap.experiments import reproduce as work
    from dualtap.experiments.store import EXPORT_FORMATS

    if export_to is not None:
        check_free(export_to, force=force, formats=EXPORT_FORMATS)
    options: dict[str, Any] = {"full": full, "n_jobs": jobs, "dask": dask, "force": force}
    try:
        written = work.reproduce(names, out, verbose=not (quiet or as_json), **options)
    except KeyboardInterrupt:
        print("dualtap: interrupted; the same command goes on from here", file=sys.stderr)
        raise typer.Exit(130) from None
    if export_to is not None:
        work.export(names, out, export_to, full=full, force=force)
        written.append(export_to)
    files = [str(path) for path in written]
    if as_json:
        print(json.dumps({"files": files}, indent=2))
    elif not quiet:
        print("\n".join(files))


def _report(result: dict[str, Any], headline: str, as_json: bool, quiet: bool) -> None:
    """Print a result to stdout: JSON for machines, a table for people."""
    if as_json:
        print(json.dumps(result, indent=2))
    elif not quiet:
        from dualtap._terminal import print_result

        print_result(result, headline)
