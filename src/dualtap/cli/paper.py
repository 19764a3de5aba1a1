"""The command that reproduces the paper."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dualtap.cli.app import Json, Quiet, app


def _experiment_names(incomplete: str) -> list[str]:
    from dualtap.experiments import NAMES

    return [name for name in (*NAMES, "all", "claims") if name.startswith(incomplete)]


@app.command(
    epilog="Examples: dualtap reproduce fig2 · dualtap reproduce all · "
    "dualtap reproduce fig4 --full --jobs 8 · dualtap reproduce fig4 --export fig4.csv"
)
def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Experiments (fig2, …), all, or claims for the verdicts.",
            autocompletion=_experiment_names,
        ),
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
