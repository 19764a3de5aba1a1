"""The command ``reproduce``: figures and claims of the paper."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dualtap.cli.app import Force, Jobs, Json, Quiet, command

if TYPE_CHECKING:
    from dualtap.experiments.pages import Report
    from dualtap.experiments.reproduce import Wanted


def _experiment_names(incomplete: str) -> list[str]:
    from dualtap.experiments import NAMES

    return [name for name in (*NAMES, "all", "claims") if name.startswith(incomplete)]


Names = Annotated[
    list[str],
    typer.Argument(
        help="Experiments (fig2, …), all, or claims: the verdicts on finished trials.",
        metavar="NAME",
        autocompletion=_experiment_names,
    ),
]
Folder = Annotated[Path, typer.Option(help="Folder for trials and figures.", metavar="DIR")]
Full = Annotated[
    bool,
    typer.Option("--full/--quick", help="Sizes and trials of the paper, or a quick run."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change parameters: N=500 P=5,10 trials=20.", metavar="NAME=…"),
]
Source = Annotated[
    Path | None, typer.Option("--from", help="Folder of archived trials to use.", metavar="DIR")
]
Yes = Annotated[bool, typer.Option("--yes", help="claims: run missing trials without asking.")]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler, or local.", metavar="ADDRESS")
]
Export = Annotated[
    Path | None,
    typer.Option(
        "--export",
        help="Also write the trials to a .csv or .parquet file, or to a folder.",
        metavar="PATH",
    ),
]
Repeat = Annotated[bool, typer.Option("--repeat", help="Run finished trials again.")]


@command(
    "dualtap reproduce fig2",
    "dualtap reproduce all --full",
    "dualtap reproduce fig4 --set N=500 P=5,10 T=0.4 trials=20",
    "dualtap reproduce claims --full --from docs/results",
)
def reproduce(
    names: Names,
    out: Folder = Path("results"),
    full: Full = False,
    settings: Settings = None,
    source: Source = None,
    yes: Yes = False,
    jobs: Jobs = -1,
    dask: Scheduler = None,
    export_to: Export = None,
    repeat: Repeat = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce figures and claims of the paper; finished trials are reused."""
    from dualtap._files import check_free
    from dualtap.experiments import reproduce as work
    from dualtap.experiments.store import EXPORT_FORMATS

    wanted = _wanted(names, settings, out, full, source)
    if export_to is not None and not work.is_folder(export_to):
        check_free(export_to, force=force, formats=EXPORT_FORMATS)
    compute = "claims" not in names or yes or _told_to_compute(wanted, quiet or as_json)
    options: dict[str, Any] = {"n_jobs": jobs, "dask": dask, "repeat": repeat}
    try:
        done = work.reproduce(wanted, compute=compute, verbose=not (quiet or as_json), **options)
    except KeyboardInterrupt:
        print("dualtap: interrupted; run the same command again to resume", file=sys.stderr)
        raise typer.Exit(130) from None
    written = list(done.written)
    if export_to is not None:
        written += work.export(wanted, export_to, force=force)
    _print(written, done.reports, as_json=as_json, quiet=quiet)


def _wanted(
    names: list[str], settings: list[str] | None, out: Path, full: bool, source: Path | None
) -> Wanted:
    """Return what is asked for; words with "=" after the first of --set are settings, too."""
    from dualtap.experiments.archive import Archive
    from dualtap.experiments.reproduce import Wanted, chosen_figures
    from dualtap.experiments.settings import parsed_settings

    given = [*(settings or []), *(name for name in names if settings and "=" in name)]
    wanted = Wanted(
        [name for name in names if name not in given],
        out,
        full,
        parsed_settings(given),
        None if source is None else Archive(source),
    )
    for experiment in chosen_figures(wanted.names):  # errors come before anything is written
        wanted.tasks(experiment)
    return wanted


def _told_to_compute(wanted: Wanted, silent: bool) -> bool:
    """Say what is missing and how long it takes, and ask on a terminal; else go on without."""
    from dualtap.experiments.reproduce import gaps

    missing = gaps(wanted)
    if not missing:
        return False
    for gap in missing:
        print(f"dualtap: {gap}", file=sys.stderr)
    if not silent and sys.stdin.isatty():
        return typer.confirm("Run them now?", default=False, err=True)
    print("dualtap: judging the finished trials; --yes runs the missing ones", file=sys.stderr)
    return False


def _print(written: list[Path], reports: list[Report], *, as_json: bool, quiet: bool) -> None:
    from dualtap.experiments.pages import verdict_lines

    files = [str(path) for path in written]
    if as_json:
        verdicts = [
            {"experiment": report.experiment.name, "claim": claim.says, "rule": claim.rule}
            | {"measured": claim.measured, "verdict": claim.verdict, "basis": report.basis}
            for report in reports
            for claim in report.claims
        ]
        print(json.dumps({"files": files, "verdicts": verdicts}, indent=2))
    elif not quiet:
        print("\n".join([*(line for r in reports for line in verdict_lines(r)), *files]))
