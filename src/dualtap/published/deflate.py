"""Many patterns one after the other: solve, keep the best student, remove what it explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from dualtap._namespace import namespace, to_numpy
from dualtap._threads import one_blas_thread, parallel_map
from dualtap.couplings import (
    Couplings,
    DeflatedCouplings,
    DenseCouplings,
    FloatArray,
    GramCouplings,
    HebbianCouplings,
)
from dualtap.published.starts import random_students, spectral_student
from dualtap.schemes import AMP, TAP, OpperWinther, Scheme, SequentialAMP, SequentialTAP
from dualtap.solve import Solution, join, solve

Base = HebbianCouplings | DenseCouplings | GramCouplings
StudentStart = Literal["random", "spectral"]
Alpha = Literal["samples", "patterns"]
Damping = float | Literal["auto"] | None

PARALLEL: dict[str, Callable[[Couplings, float], Scheme[Any]]] = {
    "tap": TAP,
    "amp": AMP,
    "opper-winther": OpperWinther,
    "opper-winther-printed": partial(OpperWinther, printed=True),
}
"""Iterations of students in which all spins move at once."""
SEQUENTIAL: dict[str, Callable[[Couplings, float, float], Scheme[Any]]] = {
    "sequential-tap": SequentialTAP,
    "sequential-amp": SequentialAMP,
}
"""Those in which one spin moves after the other, damped."""
SEQUENTIAL_DAMPING = 0.95
"""d of the paper's appendix."""

GROUP = 32
"""Students that share matrix products; groups run side by side, each in a thread of its own."""


class Step(NamedTuple):
    """One round: the best student, and what it explains."""

    m: FloatArray
    """Its magnetizations, shape (spins,)."""
    score: float
    """S = Σ_a (s^a·m)² on the data as they came."""
    gain: float
    """½ m·J^τ m, the part of ΔL̂ that earlier rounds left; 0 if no student converged."""
    gamma: float
    """Weight of m mᵀ/N in the deflation."""
    n_converged: int
    """Students that converged."""
    n_iter: int
    """Most iterations that a student took."""


@dataclass(frozen=True)
class Students:
    """How the students of a round are run."""

    n_students: int
    beta: float
    start: StudentStart = "random"
    scheme: str = "tap"
    damping: Damping = None
    tol: float = 1e-3
    max_iter: int = 200

    def run(self, J: DeflatedCouplings, rng: np.random.Generator) -> Solution:
        """Start the students and iterate until each is done."""
        m = random_students(self.n_students, J.n_spins, rng)
        in_passes = isinstance(J.base, GramCouplings)
        if self.start == "spectral":
            with one_blas_thread():
                m[:1] = spectral_student(J, rng, in_passes=in_passes)
        if isinstance(J.base, GramCouplings):  # a pass over the samples is for all students
            return self._solve(J, J.base.samples.place(m))
        if self.scheme in SEQUENTIAL:  # the sweeps have threads of their own
            return self._solve(J, m)
        groups = [m[first : first + GROUP] for first in range(0, len(m), GROUP)]
        return join(parallel_map(partial(self._solve, J), groups))

    def _solve(self, couplings: Couplings, start: FloatArray) -> Solution:
        rule: Scheme[Any]
        damping = self.damping
        if self.scheme in SEQUENTIAL:  # which damp themselves
            d = SEQUENTIAL_DAMPING if damping is None or damping == "auto" else float(damping)
            rule, damping = SEQUENTIAL[self.scheme](couplings, self.beta, d), 0.0
        else:
            rule = PARALLEL[self.scheme](couplings, self.beta)
        return solve(rule, start, damping=damping or 0.0, tol=self.tol, max_iter=self.max_iter)


def rayleigh(couplings: Couplings, m: FloatArray) -> tuple[float, float]:
    r"""Return :math:`m \cdot J m` and the γ that brings it to zero, N m·Jm / (m·m)².

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.published.deflate import rayleigh
    >>> s = np.array([1, 1, -1, -1], dtype=np.float32)
    >>> rayleigh(HebbianCouplings([s, s]), s)
    (8.0, 2.0)
    """
    explained = float(m @ couplings.dot(m[None])[0])
    square = float(m @ m)
    # m = 0 explains nothing and there is nothing to remove.
    gamma = couplings.n_spins * explained / square**2 if square > 1e-6 else 0.0
    return explained, gamma


def deflate(
    base: Base,
    students: Students,
    gamma: float | None,
    rng: np.random.Generator,
    alpha: float | None = None,
) -> Iterator[Step]:
    r"""Yield one pattern a round, for ever.

    Round τ runs P' students on :math:`J^\tau`, keeps the one with the largest score
    :math:`S = \sum_a (s^a \cdot m)^2` among those that converged (among all, if none did), and
    removes it: :math:`J^{\tau+1} = J^\tau - \gamma\, m m^\top / N`.

    Parameters
    ----------
    base : HebbianCouplings, DenseCouplings or GramCouplings
        J⁰, of the samples.
    students : Students
    gamma : float or None
        γ; None takes the Rayleigh value of each round.
    rng : Generator
    alpha : float, optional
        Another coefficient of the reaction term than M/N.

    Yields
    ------
    Step

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.published.deflate import Students, deflate
    >>> X = HopfieldModel.random(200, 1, beta=2.0, random_state=0).sample(5, random_state=1)
    >>> rounds = deflate(HebbianCouplings(X), Students(5, 2.0), None, np.random.default_rng(0))
    >>> next(rounds).n_converged
    5
    """
    directions = np.empty((0, base.n_spins), dtype=base.dtype)
    gammas: list[float] = []
    while True:
        J = DeflatedCouplings(base, directions, np.array(gammas), alpha)
        step = _round(J, students, gamma, rng)
        directions = np.vstack([directions, step.m])
        gammas.append(step.gamma)
        yield step


def _round(
    J: DeflatedCouplings,
    students: Students,
    gamma: float | None,
    rng: np.random.Generator,
) -> Step:
    """Run the students on J, pick the best, and say what it explains."""
    solution = students.run(J, rng)
    any_converged = bool(solution.converged.any())
    eligible = solution.converged | (not any_converged)
    with one_blas_thread():  # students may differ in their last bits only: choose the same one
        students_m = solution.magnetizations
        products = namespace(students_m).vecdot(students_m, J.base.dot(students_m))
        score = J.n_spins * to_numpy(products).astype(np.float64)
        best = int(np.argmax(np.where(eligible, score, -np.inf)))
        m = np.array(to_numpy(students_m[best, :]))  # a view would keep all students alive
        explained, rayleigh_gamma = rayleigh(J, m)
    return Step(
        m=m,
        score=float(score[best]),
        gain=explained / 2 if any_converged else 0.0,
        gamma=rayleigh_gamma if gamma is None else gamma,
        n_converged=int(solution.converged.sum()),
        n_iter=int(solution.n_iter.max()),
    )
