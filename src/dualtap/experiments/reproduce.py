"""From names to figures and the page of claims: what ``dualtap reproduce`` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from dualtap._files import atomic_write
from dualtap.experiments import NAMES, load
from dualtap.experiments.archive import Archive, write_archive
from dualtap.experiments.drawing import save_figure
from dualtap.experiments.experiment import Experiment, Results, Task
from dualtap.experiments.pages import Report, claims_page, figures_page
from dualtap.experiments.rules import fingerprints
from dualtap.experiments.runner import run
from dualtap.experiments.store import Store

GROUPS = ("all", "claims")


def chosen_figures(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments that names stand for, each once; "all" and "claims" mean every one.

    Examples
    --------
    >>> from dualtap.experiments.reproduce import chosen_figures
    >>> [experiment.name for experiment in chosen_figures(["fig2", "fig2"])]
    ['fig2']
    """
    wanted = NAMES if set(names) & set(GROUPS) else names
    return [load(name) for name in dict.fromkeys(wanted)]


@dataclass(frozen=True)
class Wanted:
    """Which trials are meant, and where they are.

    Attributes
    ----------
    names : sequence of str
        Experiments; "all" or "claims" for all of them, with the pages of claims and figures.
    folder : Path
        Holds the store, and ``figures/``.
    full : bool
        The paper's sizes and counts, not the quick ones.
    settings : mapping
        Other parameters, as for :meth:`Experiment.run`.
    archive : Archive or None
        Trials made before.
    """

    names: Sequence[str]
    folder: Path
    full: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    archive: Archive | None = None

    def tasks(self, experiment: Experiment) -> list[Task]:
        """Return the trials of an experiment that are meant."""
        return experiment.tasks(self.full, **self.settings)

    @property
    def kind(self) -> str:
        """What verdicts on these trials are called; nothing at the paper's counts."""
        return "own parameters" if self.settings else "" if self.full else "quick"

    @property
    def command(self) -> str:
        """The command that means the same."""
        words = ["dualtap reproduce", *self.names, *(["--full"] if self.full else [])]
        return " ".join(words)

    def label(self, experiment: Experiment) -> str:
        """Return the name of an experiment's files."""
        set_to = (f"{k}={'+'.join(map(str, v))}" for k, v in self.settings.items())
        return "-".join([experiment.name, *set_to])


class Gap(NamedTuple):
    """Trials of an experiment that are not there."""

    name: str
    n_missing: int
    n_tasks: int
    seconds: float | None
    """That they would take one after the other, by those made before; None if there are none."""

    def __str__(self) -> str:
        n_jobs = os.cpu_count() or 1
        takes = "time unknown"
        if self.seconds is not None:
            takes = f"about {duration(self.seconds / n_jobs)} on {n_jobs} cores"
        return f"{self.name}: {self.n_missing} of {self.n_tasks} trials are missing, {takes}"


def duration(seconds: float) -> str:
    """Return a time as a person would say it.

    Examples
    --------
    >>> from dualtap.experiments.reproduce import duration
    >>> duration(7.4), duration(100), duration(9000)
    ('7 s', '2 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def gaps(wanted: Wanted) -> list[Gap]:
    """Return what is missing, experiment by experiment, those without a gap left out."""
    found = []
    with Store(wanted.folder, wanted.archive) as store:
        for experiment in chosen_figures(wanted.names):
            tasks = wanted.tasks(experiment)
            missing = [task for task in tasks if task not in store]
            if missing:
                found.append(Gap(experiment.name, len(missing), len(tasks), store.seconds(missing)))
    return found


class Reproduced(NamedTuple):
    """Files written, and what came of each experiment."""

    written: list[Path]
    reports: list[Report]


def reproduce(
    wanted: Wanted,
    *,
    compute: bool = True,
    n_jobs: int = -1,
    dask: str | None = None,
    repeat: bool = False,
    verbose: bool = False,
) -> Reproduced:
    """Make the trials that are missing, draw figures, judge, and write the pages if asked for.

    Parameters
    ----------
    wanted : Wanted
    compute : bool
        False draws and judges what is there, archived trials of older code included.
    n_jobs, dask, repeat, verbose
        As in :func:`dualtap.experiments.runner.run`.

    Returns
    -------
    Reproduced
    """
    experiments = chosen_figures(wanted.names)
    all_tasks = {experiment.name: wanted.tasks(experiment) for experiment in experiments}
    written: list[Path] = []
    reports: list[Report] = []
    with Store(wanted.folder, wanted.archive) as store:
        if compute and not wanted.kind:
            store.fix_rules(fingerprints())
        for experiment in experiments:
            tasks = all_tasks[experiment.name]
            if compute:
                run(
                    experiment, store, tasks,
                    n_jobs=n_jobs, dask=dask, repeat=repeat, verbose=verbose,
                )  # fmt: skip
            results = store.results(tasks, of_any_code=not compute)
            report, files = _drawn(experiment, results, tasks, wanted)
            reports.append(report)
            written += files
        fixed = store.fixed_rules()
    if set(wanted.names) & set(GROUPS):
        written += _write_pages(reports, wanted, fixed)
    return Reproduced(written, reports)


def _drawn(
    experiment: Experiment, results: Results, tasks: Sequence[Task], wanted: Wanted
) -> tuple[Report, list[Path]]:
    """Draw and judge one experiment; say so where that cannot be done."""
    report = Report(experiment, results, len(tasks), wanted.kind, code=_older_code(tasks, wanted))
    if not results:
        return replace(report, undrawn="there are no trials"), []
    complete = len(results) == len(tasks) and not wanted.settings
    try:
        figure, caption = experiment.plot(results), experiment.caption(results)
        claims = [] if experiment.claims is None else experiment.claims(results)
    except ValueError as error:
        if complete:
            raise
        # Other parameters, or half of the trials, may be too little for a figure to show.
        return replace(report, undrawn=f"not drawn: {error}"), []
    label = wanted.label(experiment)
    files = save_figure(figure, caption, wanted.folder / "figures", label)
    return replace(report, caption=caption, claims=claims), files


def _older_code(tasks: Sequence[Task], wanted: Wanted) -> str:
    """Return the version of the archive's code if it is not that of the tasks."""
    if wanted.archive is None or not tasks:
        return ""
    made = wanted.archive.made.get(tasks[0].experiment)
    return made.code if made is not None and made.code != tasks[0].version else ""


def _write_pages(reports: Sequence[Report], wanted: Wanted, fixed: Mapping[str, str]) -> list[Path]:
    pages = {
        "claims.md": claims_page(reports, wanted.command, fixed),
        "figures.md": figures_page(reports, wanted.command),
    }
    for name, text in pages.items():
        with atomic_write(wanted.folder / name, force=True) as file:
            file.write(text.encode())
    return [wanted.folder / name for name in pages]


def export(wanted: Wanted, path: Path, *, force: bool = False) -> list[Path]:
    """Write trials to a ``.csv`` or ``.parquet`` file, or all to a folder as an archive.

    Returns
    -------
    list of Path
        Files written.
    """
    experiments = chosen_figures(wanted.names)
    with Store(wanted.folder, wanted.archive) as store:
        if not is_folder(path):
            tasks = [task for experiment in experiments for task in wanted.tasks(experiment)]
            store.export(tasks, path, force=force)
            return [path]
        results = {
            experiment.name: (experiment.version, store.results(wanted.tasks(experiment)))
            for experiment in experiments
        }
        there = {name: (code, rows) for name, (code, rows) in results.items() if rows}
        return write_archive(path, there, store.fixed_rules())


def is_folder(path: Path) -> bool:
    """Tell a folder for an archive from a file of trials: it has no suffix, or is there."""
    return path.is_dir() or not path.suffix
