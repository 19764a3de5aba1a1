"""Commands that make data: ``demo``, ``sample``, ``dataset``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dualtap.cli.app import FORMATS, Force, Json, Quiet, SamplesOut, Seed, command, print_outcome


class StartChoice(StrEnum):
    """Initial states of the chains of ``sample``."""

    auto = "auto"
    patterns = "patterns"
    random = "random"
    annealed = "annealed"


def _dataset_names(incomplete: str) -> list[str]:
    from dualtap.datasets import names

    return [name for name in names() if name.startswith(incomplete)]


@command(
    "dualtap demo --seed 3 --output my.png",
)
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Figure to write.", metavar="FILE")
    ] = Path("demo.png"),
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Recover twenty hidden patterns from two hundred samples, and draw the result.

    The fit is blind: neither the number of patterns nor the temperature is given.
    """
    from dualtap._files import atomic_write, check_free
    from dualtap.hopfield import HopfieldModel
    from dualtap.plots import check_format, recovery_figure
    from dualtap.recovery import HopfieldPatterns
    from dualtap.report.summary import against, describe, headline

    picture_format = check_format(output)
    check_free(output, force=force)
    watched = not (quiet or as_json)
    n_samples = 200
    teacher = HopfieldModel.random(n_spins=1000, n_patterns=20, beta=2.0, random_state=seed)
    X = teacher.sample(n_samples, random_state=seed + 1, verbose=watched)
    model = HopfieldPatterns(random_state=seed, verbose=watched).fit(X)
    figure = recovery_figure(model, teacher, n_samples)
    with atomic_write(output, force=force) as file:
        figure.savefig(file, format=picture_format, dpi=150)
    result = describe(model) | against(model, teacher) | {"picture": str(output)}
    print_outcome(result, headline(result), as_json=as_json, quiet=quiet)


@command(
    "dualtap sample --spins 1000 --patterns 20 --beta 2 --samples 200 -o data.npz",
)
def sample(
    output: SamplesOut,
    spins: Annotated[int, typer.Option(help="Number of spins.", metavar="N", min=2)] = 1000,
    patterns: Annotated[int, typer.Option(help="Number of patterns.", metavar="P", min=1)] = 20,
    beta: Annotated[float, typer.Option(help="Inverse temperature.", metavar="BETA")] = 2.0,
    samples: Annotated[int, typer.Option(help="Number of samples.", metavar="M", min=1)] = 200,
    sweeps: Annotated[
        int, typer.Option(help="Glauber sweeps per chain.", metavar="N", min=0)
    ] = 100,
    start: Annotated[
        StartChoice, typer.Option(help="Initial states of the chains.")
    ] = StartChoice.auto,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw samples of a random Hopfield model; an .npz file also stores the model."""
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
    result = parameters | {"file": str(output)}
    print_outcome(result, done, as_json=as_json, quiet=quiet)


@command(
    "dualtap dataset",
    "dualtap dataset digits -o digits.npz",
    "dualtap dataset questionnaire -o answers.csv",
)
def dataset(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of the data set; if omitted, the names are listed.",
            metavar="NAME",
            autocompletion=_dataset_names,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"File to write: {FORMATS}.", metavar="FILE"),
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write an example data set to a file: digits, cells, votes, synthetic samples."""
    from dualtap import datasets
    from dualtap._files import check_free
    from dualtap.hopfield import HopfieldModel
    from dualtap.io import FORMATS, write_samples
    from dualtap.io.samples import LABELS_NAME

    if name is None:
        known = datasets.names()
        print(json.dumps(known) if as_json else "\n".join(known))
        return
    if output is None:
        raise ValueError(f"name an output file with -o: dualtap dataset {name} -o {name}.npz")
    check_free(output, force=force, formats=FORMATS)
    data = datasets.load(name, random_state=seed)
    labels = None if data.y is None else [data.target_names[k] for k in data.y]
    teacher = data.teacher if isinstance(data.teacher, HopfieldModel) else None
    write_samples(
        output,
        data.X,
        names=data.names,
        labels=labels,
        teacher=teacher,
        parameters={"dataset": name, "seed": seed},
        force=force,
    )
    n_samples, n_spins = data.X.shape
    done = f"{n_samples} samples of {n_spins} spins written to {output}"
    result: dict[str, Any] = {"about": data.description, "file": str(output)}
    if labels is not None:
        result["labels"] = LABELS_NAME
    if data.shape is not None:
        result["shape"] = "x".join(map(str, data.shape))
    print_outcome(result, done, as_json=as_json, quiet=quiet)
