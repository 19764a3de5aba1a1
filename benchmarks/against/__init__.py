"""Ours against its peers: ``dualtap bench`` and ``python -m benchmarks peers``.

Every contender is a script in ``benchmarks/peers`` and runs in a process of its own, peers in
environments of their own. All get the same files, in turns: run r of everybody comes before run
r+1 of anybody.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.against import couplings, rbm, recovery, sampling
from benchmarks.against.tables import Rows, Table
from benchmarks.harness import RESULTS, markdown, write
from dualtap._progress import Advance, progress

PICTURES = Path(__file__).parent.parent.parent / "docs" / "images"


class _Measure(Protocol):
    def __call__(self, runs: int, quick: bool, folder: Path, advance: Advance) -> Rows: ...


class Part(NamedTuple):
    """One comparison."""

    measure: _Measure
    n_answers: Callable[[int, bool], int]
    tables: Callable[[Rows], list[Table]]
    plot: Callable[[Rows, Path], Path]
    runs: int
    """How many when nobody says."""


PARTS = {
    name: Part(part.measure, part.n_answers, part.tables, part.plot, runs)
    for name, part, runs in (
        ("recovery", recovery, 4),
        ("couplings", couplings, 3),
        ("rbm", rbm, 5),
        ("sampling", sampling, 5),
    )
}


def run(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    runs: int | None = None,
    out: Path | None = None,
    verbose: bool = True,
) -> list[Path]:
    """Compare, write tables and pictures, and print the tables.

    Parameters
    ----------
    names : sequence of str
        Keys of `PARTS`; all when none is named.
    quick : bool
        Fewer and smaller cases, one run of each: a few minutes for everything.
    runs : int, optional
        Of every contender in every case.
    out : Path, optional
        Folder of everything; the repository's results and pictures by default.
    verbose : bool
        Whether to show a progress bar and print the tables.

    Returns
    -------
    list of Path
        The files.
    """
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise ValueError(f"unknown comparison {unknown[0]!r}: choose from {', '.join(PARTS)}")
    tables, pictures = (out or RESULTS), (out or PICTURES)
    tables.mkdir(parents=True, exist_ok=True)
    written = []
    for name in names or PARTS:
        part = PARTS[name]
        n_runs = runs or (1 if quick else part.runs)
        with (
            tempfile.TemporaryDirectory() as folder,
            progress(name, part.n_answers(n_runs, quick), verbose) as advance,
        ):
            rows = part.measure(n_runs, quick, Path(folder), advance)
        written += publish(name, rows, tables, pictures, verbose)
    return written


def publish(name: str, rows: Rows, folder: Path, pictures: Path, verbose: bool) -> list[Path]:
    """Write what was measured, the tables and the picture of one comparison."""
    part = PARTS[name]
    measured = folder / f"peers-{name}-runs.json"
    measured.write_text(json.dumps(rows, indent=1) + "\n")
    written = [measured]
    for table in part.tables(rows):
        write(table.name, table.title, table.rows, folder)
        written.append(folder / f"{table.name}.md")
        if verbose:
            print(f"{table.title}\n\n{markdown(table.rows)}")
    return [*written, part.plot(rows, pictures)]
