"""What an experiment is: parameters × trials, one pure trial function, one plot, its claims."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Parameters = Mapping[str, Any]
Outcome = Mapping[str, Any]
Verdict = Literal["holds", "holds with a limit", "does not hold"]


@dataclass(frozen=True)
class Task:
    """One trial to make: everything its outcome depends on.

    Attributes
    ----------
    experiment : str
    version : int
        Of the trial function: rows of another version are never used.
    parameters : mapping
        Of plain JSON values.
    index : int
        Which of the trials at this point.
    """

    experiment: str
    version: int
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
        """A seed of its own below 2^31, the same whoever makes the trial and when."""
        return int(self.key[:8], 16) >> 1


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
    arrays_path : Path or None
        Where its arrays are.
    seconds : float
    dualtap : str
        Version that made it.
    """

    parameters: Parameters
    index: int
    seed: int
    results: Mapping[str, Any]
    arrays_path: Path | None
    seconds: float
    dualtap: str

    def array(self, name: str) -> NDArray[Any]:
        """Return one of the trial's arrays."""
        if self.arrays_path is None:
            raise KeyError(name)
        with np.load(self.arrays_path, allow_pickle=False) as arrays:
            array: NDArray[Any] = arrays[name]
        return array


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
        """Return one result of every row with these parameters."""
        return np.array([row.results[name] for row in self.where(**parameters)])

    def values(self, name: str, **parameters: Any) -> list[Any]:
        """Return the values that a parameter takes, in order of appearance."""
        return list(dict.fromkeys(row.parameters[name] for row in self.where(**parameters)))


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
        "holds", "holds with a limit" or "does not hold".
    slip : str
        What is wrong in the printed text, mended; empty if nothing is.
    """

    says: str
    where: str
    decided_by: str
    measured: str
    verdict: Verdict
    slip: str = ""


@dataclass(frozen=True)
class Experiment:
    """An experiment, as the runner sees it.

    Attributes
    ----------
    name : str
        What the user types.
    title : str
        One line.
    version : int
        Raise it when the trial changes its meaning.
    trial : callable
        ``trial(parameters, seed)``: pure, importable, returns numbers, texts and arrays by name.
    points : callable
        ``points(full)``: the parameter sets, each with its number of trials.
    plot : callable
        ``plot(results)``: a figure.
    caption : callable
        ``caption(results)``: what the figure shows, with every parameter.
    claims : callable, optional
        ``claims(results)``: verdicts.
    """

    name: str
    title: str
    version: int
    trial: Callable[[Parameters, int], Outcome]
    points: Callable[[bool], Sequence[tuple[Parameters, int]]]
    plot: Callable[[Results], Figure]
    caption: Callable[[Results], str]
    claims: Callable[[Results], list[Claim]] | None = None

    def tasks(self, full: bool) -> list[Task]:
        """Return every trial to be made."""
        return [
            Task(self.name, self.version, parameters, index)
            for parameters, n_trials in self.points(full)
            for index in range(n_trials)
        ]
