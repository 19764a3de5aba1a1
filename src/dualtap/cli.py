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
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer

if TYPE_CHECKING:
    from dualtap.hopfield import HopfieldModel
    from dualtap.recovery import DualTAP

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


class Method(StrEnum):
    """What ``fit`` runs."""

    tap = "tap"
    paper = "paper"


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
    from dualtap.hopfield import HopfieldModel
    from dualtap.plots import check_format, recovery_figure
    from dualtap.recovery import DualTAP

    picture_format = check_format(output)
    check_free(output, force=force)
    watched = not (quiet or as_json)
    n_samples, n_students = 200, 25
    teacher = HopfieldModel.random(n_spins=1000, n_patterns=20, beta=2.0, random_state=seed)
    X = teacher.sample(n_samples, random_state=seed + 1, verbose=watched)
    # All P' rounds, as in the paper's figure, to see what comes after the last pattern.
    model = DualTAP(
        n_students=n_students, n_steps=n_students, random_state=seed, verbose=watched
    ).fit(X)
    figure = recovery_figure(model, teacher, n_samples)
    with atomic_write(output, force=force) as file:
        figure.savefig(file, format=picture_format, dpi=150)
    result = _describe(model) | _against(model, teacher) | {"picture": str(output)}
    _report(result, _headline(result), as_json, quiet)


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
    headline = f"{samples} samples of {spins} spins written to {output}"
    _report(parameters | {"file": str(output)}, headline, as_json, quiet)


@app.command(
    epilog="Examples: dualtap fit data.npz -o model.npz · "
    "dualtap fit votes.csv --method paper --beta 2 --patterns 20 -o model.npz"
)
def fit(
    data: Annotated[Path, typer.Argument(help="Samples: .npz, .npy, .csv or .tsv.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")],
    method: Annotated[
        Method,
        typer.Option(help="tap: nothing need be known. paper: the published algorithm."),
    ] = Method.tap,
    patterns: Annotated[
        int | None, typer.Option(help="Number of patterns, if known.", min=1)
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Inverse temperature, if known.")] = None,
    students: Annotated[
        int | None,
        typer.Option(
            help="Students of a round, and most rounds when --patterns is not given.", min=1
        ),
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
    from dualtap.io import MODEL_FORMATS, read_samples, save
    from dualtap.recovery import DualTAP
    from dualtap.spins import as_spins

    check_free(output, force=force, formats=MODEL_FORMATS)
    file = read_samples(data)
    spins = as_spins(file.X, zero_is_missing=zero_is_missing)
    watched = not (quiet or as_json)
    if watched:
        print(spins.summary, file=sys.stderr)
    options: dict[str, Any] = {"n_students": students, "random_state": seed, "verbose": watched}
    if method is Method.paper:
        if beta is None:
            raise ValueError("the published algorithm needs --beta; --method tap does not")
        model = DualTAP.paper(patterns, beta=beta, **options)
    else:
        model = DualTAP(patterns, beta, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(spins)
    for warning in caught:
        print(f"dualtap: warning: {warning.message}", file=sys.stderr)
    if file.names is not None:
        model.feature_names_in_ = np.array(file.names, dtype=object)
    save(model, output, force=force)
    result = _describe(model) | {"file": str(output)}
    if file.teacher is not None:
        result |= _against(model, file.teacher)
    _report(result, _headline(result), as_json, quiet)


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
    from dualtap.io import load, read_samples
    from dualtap.spins import as_spins

    fitted = load(model)
    result = _describe(fitted)
    if data is not None:
        file = read_samples(data)
        spins = as_spins(file.X, zero_is_missing=zero_is_missing)
        shares = np.bincount(fitted.predict(spins), minlength=fitted.n_patterns_) / spins.n_samples
        result |= {
            "data": str(spins.summary),
            "score": fitted.score(spins),
            "weights": shares.tolist(),
        }
        if file.teacher is not None:
            result |= _against(fitted, file.teacher)
    _report(result, _headline(result), as_json, quiet=False)


def _describe(model: DualTAP) -> dict[str, Any]:
    """Return what a fitted model says, ready for JSON."""
    confidence = np.abs(model.magnetizations_)
    return {
        "n_patterns": model.n_patterns_,
        "n_spins": model.n_features_in_,
        "beta": model.beta_,
        "beta_was_given": model.beta is not None,
        "rounds": len(model.history_.scores),
        "weights": model.weights_.tolist(),
        "mean_confidence": confidence.mean(axis=1).tolist(),
        "unsure_bits": (confidence < 0.8).sum(axis=1).tolist(),
    }


def _against(model: DualTAP, teacher: HopfieldModel) -> dict[str, Any]:
    """Compare with the teacher that the file or the demo knows."""
    from dualtap.metrics import coupling_error, match

    matched = match(model.patterns_, teacher.patterns)
    error = coupling_error(model.magnetizations_, teacher.patterns)
    return {
        "true_patterns": teacher.n_patterns,
        "true_beta": teacher.beta,
        "recovered": matched.n_recovered(),
        "mean_overlap": matched.mean_overlap,
        "min_overlap": float(matched.overlaps.min()),
        "relative_coupling_error": error.relative,
        "epsilon": error.printed,
    }


def _headline(result: dict[str, Any]) -> str:
    """Say what was found in one line."""
    if "recovered" in result:
        return (
            f"{result['recovered']} of {result['true_patterns']} hidden patterns recovered "
            f"(mean overlap {result['mean_overlap']:.3f})"
        )
    source = "given" if result["beta_was_given"] else "fitted"
    return f"{result['n_patterns']} patterns found, β = {result['beta']:.3g} ({source})"


def _report(result: dict[str, Any], headline: str, as_json: bool, quiet: bool) -> None:
    """Print a result to stdout: JSON for machines, a table for people."""
    if as_json:
        print(json.dumps(result, indent=2))
    elif not quiet:
        from dualtap._terminal import print_result

        print_result(result, headline)
