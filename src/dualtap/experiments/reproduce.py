"""From names to figures and the page of claims: what ``dualtap reproduce`` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dualtap._files import atomic_write
from dualtap.experiments import NAMES, load
from dualtap.experiments.drawing import save_figure
from dualtap.experiments.experiment import OURS, Claim, Experiment, Task
from dualtap.experiments.runner import run
from dualtap.experiments.store import Store

GROUPS = ("all", "claims")


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments that names stand for, each once; "all" and "claims" mean every one.

    Examples
    --------
    >>> from dualtap.experiments.reproduce import chosen
    >>> [experiment.name for experiment in chosen(["fig2", "fig2"])]
    ['fig2']
    """
    wanted = NAMES if set(names) & set(GROUPS) else names
    return [load(name) for name in dict.fromkeys(wanted)]


def reproduce(
    names: Sequence[str],
    folder: Path,
    *,
    full: bool = False,
    n_jobs: int = -1,
    dask: str | None = None,
    force: bool = False,
    verbose: bool = False,
) -> list[Path]:
    """Run experiments, draw their figures, and write the pages if asked for.

    Parameters
    ----------
    names : sequence of str
        Experiments; "all" or "claims" for all of them, with the pages of claims and figures.
    folder : Path
        Holds the store, and ``figures/``.
    full, n_jobs, dask, force, verbose
        As in :func:`dualtap.experiments.runner.run`.

    Returns
    -------
    list of Path
        Files written.
    """
    experiments = chosen(names)
    written: list[Path] = []
    judged: list[tuple[str, list[Claim]]] = []
    captions: list[tuple[Experiment, str]] = []
    with Store(folder) as store:
        for experiment in experiments:
            results = run(
                experiment,
                store,
                full=full,
                n_jobs=n_jobs,
                dask=dask,
                force=force,
                verbose=verbose,
            )
            figure, caption = experiment.plot(results), experiment.caption(results)
            written += save_figure(figure, caption, folder / "figures", experiment.name)
            captions.append((experiment, caption))
            if experiment.claims is not None:
                judged.append((experiment.name, experiment.claims(results)))
    if set(names) & set(GROUPS):
        pages = {"claims.md": claims_page(judged, full), "figures.md": figures_page(captions)}
        for name, text in pages.items():
            with atomic_write(folder / name, force=True) as file:
                file.write(text.encode())
            written.append(folder / name)
    return written


def export(names: Sequence[str], folder: Path, path: Path, *, full: bool, force: bool) -> int:
    """Write the trials of experiments to a ``.csv`` or ``.parquet`` file; return how many."""
    tasks: list[Task] = [task for one in chosen(names) for task in one.tasks(full)]
    with Store(folder) as store:
        store.export(tasks, path, force=force)
        return len(store.results(tasks))


def claims_page(judged: Sequence[tuple[str, Sequence[Claim]]], full: bool) -> str:
    """Return the verdicts as a page of Markdown."""
    counts = "the paper's counts" if full else "quick counts"
    command = "dualtap reproduce all" + (" --full" if full else "")
    lines = [
        "# The paper's claims, one by one",
        "",
        f"Written by `{command}` from the trials in its store ({counts}). Each claim is in our "
        "own words.",
        "",
        "| claim | where | decided by | measured | verdict |",
        "|---|---|---|---|---|",
    ]
    flat = [(name, claim) for name, claims in judged for claim in claims]
    lines += [_row(name, claim) for name, claim in flat if claim.where != OURS]
    slips = [f"- {claim.where}: {claim.slip}" for _, claim in flat if claim.slip]
    ours = [_row(name, claim) for name, claim in flat if claim.where == OURS]
    if ours:
        lines += ["", "## Claims of this software", "", *lines[4:6], *ours]
    if slips:
        lines += ["", "## Slips of the printed text, mended here", "", *slips]
    return "\n".join(lines) + "\n"


def _row(name: str, claim: Claim) -> str:
    cells = (claim.says, claim.where, f"{claim.decided_by} (`{name}`)", claim.measured)
    return f"| {' | '.join(map(_cell, cells))} | **{claim.verdict}** |"


def figures_page(captions: Sequence[tuple[Experiment, str]]) -> str:
    """Return all figures with their captions as a page of Markdown."""
    lines = ["# Every figure", "", "Drawn by `dualtap reproduce all`.", ""]
    for experiment, caption in captions:
        picture = f"![{experiment.title}](figures/{experiment.name}.png)"
        lines += [f"## {experiment.name}: {experiment.title}", "", picture, "", caption, ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
