"""What an experiment is: parameters × trials, one pure trial function, one plot, its claims."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dualtap.experiments.settings import points_with
from dualtap.experiments.versions import code_version

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Parameters = Mapping[str, Any]
Outcome = Mapping[str, Any]
Arrays = Mapping[str, NDArray[Any]]
Verdict = Literal["holds", "holds with a limit", "does not hold", "not judged"]


class MissingTrialsError(ValueError):
    """There are no trials for what was asked; the message says which."""


@dataclass(frozen=True)
class Task:
    """One trial to make: everything its outcome depends on.

    Attributes
    ----------
    experiment : str
    version : str
        Of the code that makes it: rows of another version are never used.
    parameters : mapping
        Of plain JSON values.
    index : int
        Which of the trials at this point.
    """

    experiment: str
    version: str
    parameters: Parameters
    index: int

    @property
    def point(self) -> str:
        """The parameters as canonical text: equal parameters, equal text."""
        return json.dumps(self.parameters, sort_keys=True)

    @property
    def key(self) -> str:
        """A text of its own, fit for a file name."""
        text = f"{self.experiment}|{self.version}|{self.point}|{self.index}"
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def seed(self) -> int:
        """The trial's own seed, below 2^31: a function of its parameters, whatever the code."""
        text = f"{self.experiment}|{self.point}|{self.index}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) >> 1


@dataclass(frozen=True)
class Row:
    """A finished trial.

    Attributes
    ----------
    parameters : mapping
    index : int
    seed : int
    results : mapping
        Numbers and texts.
    arrays : callable or None
        Returns its arrays by name.
    seconds : float
        That it took, or its CPU seconds where these are less.
    dualtap : str
        Version that made it.
    """

    parameters: Parameters
    index: int
    seed: int
    results: Mapping[str, Any]
    arrays: Callable[[], Arrays] | None
    seconds: float
    dualtap: str

    def array(self, name: str) -> NDArray[Any]:
        """Return one of the trial's arrays."""
        if self.arrays is None:
            raise KeyError(name)
        return self.arrays()[name]


@dataclass(frozen=True)
class Results:
    """The rows of an experiment, in the order of its points.

    Examples
    --------
    >>> from dualtap.experiments.experiment import Results, Row
    >>> rows = [Row({"M": M}, 0, 1, {"overlap": M / 10}, None, 0.1, "0") for M in (5, 7)]
    >>> Results(rows).column("overlap", M=7)
    array([0.7])
    >>> Results(rows).values("M")
    [5, 7]
    >>> Results(rows).column("overlap", M=8)
    Traceback (most recent call last):
    ...
    dualtap.experiments.experiment.MissingTrialsError: there is no trial with M = 8
    """

    rows: Sequence[Row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **parameters: Any) -> Results:
        """Return the rows with these parameters."""
        wanted = parameters.items()
        return Results(
            [row for row in self.rows if all(row.parameters.get(k) == v for k, v in wanted)]
        )

    def column(self, name: str, **parameters: Any) -> NDArray[Any]:
        """Return one result of every row with these parameters; raise if there is none."""
        rows = self.where(**parameters)
        if not rows:
            raise MissingTrialsError(f"there is no trial with {_listed(parameters)}")
        return np.array([row.results[name] for row in rows])

    def stacked(self, name: str, **parameters: Any) -> NDArray[Any]:
        """Return one array of every row with these parameters, stacked; raise if there is none."""
        rows = self.where(**parameters)
        if not rows:
            raise MissingTrialsError(f"there is no trial with {_listed(parameters)}")
        return np.array([row.array(name) for row in rows])

    def values(self, name: str, **parameters: Any) -> list[Any]:
        """Return the values that a parameter takes, in order of appearance."""
        return list(dict.fromkeys(row.parameters[name] for row in self.where(**parameters)))

    def only(self, name: str) -> Any:
        """Return the value of a parameter that must be the same in all rows."""
        values = self.values(name)
        if len(values) != 1:
            given = ", ".join(map(str, values)) or "none"
            raise MissingTrialsError(
                f"one value of {name} can be drawn and judged at a time, not {given}"
            )
        return values[0]

    def in_memory(self) -> Results:
        """Return the same rows with their arrays read, free of any file."""
        return Results([_read(row) for row in self.rows])

    def n_trials(self) -> str:
        """Return the number of trials per point as text, "3" or "2 to 5"."""
        points = [json.dumps(row.parameters, sort_keys=True) for row in self.rows]
        counts = [points.count(point) for point in dict.fromkeys(points)]
        low, high = min(counts, default=0), max(counts, default=0)
        return f"{low}" if low == high else f"{low} to {high}"


def _read(row: Row) -> Row:
    if row.arrays is None:
        return row
    arrays = row.arrays()
    return replace(row, arrays=lambda: arrays)


def _listed(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in parameters.items()) or "any parameters"


OURS = "this software"
"""Where a claim comes from that is not in the paper."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our own words, or one of ours, and what we measured.

    Attributes
    ----------
    says : str
        What the paper says, or what we say.
    where : str
        Section or figure of the paper; ``OURS`` for a claim of this software.
    decided_by : str
        The test that decides it.
    measured : str
    verdict : str
        "holds", "holds with a limit", "does not hold", or "not judged" for want of trials.
    slip : str
        What is wrong in the printed text, mended; empty if nothing is.
    rule : str
        Name of the rule in :mod:`dualtap.experiments.rules`.
    close : bool
        Whether the threshold lies within the error of what was measured.
    """

    says: str
    where: str
    decided_by: str
    measured: str
    verdict: Verdict
    slip: str = ""
    rule: str = ""
    close: bool = False


@dataclass(frozen=True)
class Experiment:
    """An experiment, as the runner sees it.

    Attributes
    ----------
    name : str
        What the user types.
    title : str
        One line.
    trial : callable
        ``trial(parameters, seed)``: pure, importable, returns numbers, texts and arrays by name.
    points : callable
        ``points(full, *, N=(1000,), …)``: the parameter sets, each with its number of trials. Its
        keywords, each a sequence of values, are what a user may set.
    plot : callable
        ``plot(results)``: a figure.
    caption : callable
        ``caption(results)``: what the figure shows, with every parameter.
    claims : callable, optional
        ``claims(results)``: verdicts.
    """

    name: str
    title: str
    trial: Callable[[Parameters, int], Outcome]
    points: Callable[..., Sequence[tuple[Parameters, int]]]
    plot: Callable[[Results], Figure]
    caption: Callable[[Results], str]
    claims: Callable[[Results], list[Claim]] | None = None

    @property
    def version(self) -> str:
        """Fingerprint of the code that a trial runs."""
        return code_version(self.trial)

    def tasks(self, full: bool = False, **settings: Any) -> list[Task]:
        """Return every trial to be made; settings are those of :meth:`run`."""
        version = self.version
        return [
            Task(self.name, version, parameters, index)
            for parameters, n_trials in points_with(self.name, self.points, full, settings)
            for index in range(n_trials)
        ]

    def run(
        self,
        *,
        full: bool = False,
        folder: str | Path | None = None,
        n_jobs: int = 1,
        verbose: bool = False,
        **settings: Any,
    ) -> Results:
        """Make the trials, with other parameters if they are given.

        Parameters
        ----------
        full : bool
            The paper's sizes and counts, not the quick ones.
        folder : str or Path, optional
            Keeps the trials, and has those that need not be made again; none are kept without.
        n_jobs : int
            Processes; -1 for one per core.
        verbose : bool
            Show a progress bar on a terminal.
        **settings
            Parameters of the figure, one value or several each, and ``trials`` per point.

        Returns
        -------
        Results

        Examples
        --------
        >>> from dualtap.experiments import load
        >>> fig4 = load("fig4")
        >>> results = fig4.run(N=200, P=3, T=(0.3, 0.5), ratio=(5, 10), trials=2)
        >>> len(results), results.values("M")
        (8, [15, 30])
        >>> figure = fig4.plot(results)
        """
        from tempfile import TemporaryDirectory

        from dualtap.experiments.runner import run
        from dualtap.experiments.store import Store

        tasks = self.tasks(full, **settings)
        if folder is not None:
            with Store(folder) as store:
                return run(self, store, tasks, n_jobs=n_jobs, verbose=verbose)
        with TemporaryDirectory() as temporary, Store(temporary) as store:
            return run(self, store, tasks, n_jobs=n_jobs, verbose=verbose).in_memory()
