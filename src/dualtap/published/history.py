"""What happened round by round, kept for plots and for judging a recovery."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import FloatArray
from dualtap.fitted.nearest import signs
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error_path, overlaps
from dualtap.published.deflate import Step


@dataclass(frozen=True)
class History:
    r"""What happened round by round, also after the last pattern that was kept.

    Attributes
    ----------
    magnetizations : array of shape (rounds, spins)
        The best student of each round.
    scores : array of shape (rounds,)
        S_τ = Σ_a (s^a·m^τ)².
    likelihood : array of shape (rounds,)
        :math:`\hat{\mathcal L}` after each round, (1/2N) Σ_{t≤τ} S_t.
    gains : array of shape (rounds,)
        ½ m·J^τ m, the part of each increment that earlier rounds had not explained; 0 where no
        student converged. The kink is looked for here.
    gammas : array of shape (rounds,)
        Deflation weights.
    n_converged, n_iter : array of shape (rounds,), int
        Students that converged, and most iterations taken.
    """

    magnetizations: FloatArray
    scores: NDArray[np.float64]
    likelihood: NDArray[np.float64]
    gains: NDArray[np.float64]
    gammas: NDArray[np.float64]
    n_converged: NDArray[np.int64]
    n_iter: NDArray[np.int64]

    @classmethod
    def from_steps(cls, steps: list[Step]) -> History:
        """Collect the rounds of :func:`dualtap.published.deflate.deflate`."""
        m = np.stack([step.m for step in steps])
        S = np.array([step.score for step in steps])
        return cls(
            magnetizations=m,
            scores=S,
            likelihood=np.cumsum(S) / (2 * m.shape[1]),
            gains=np.array([step.gain for step in steps]),
            gammas=np.array([step.gamma for step in steps]),
            n_converged=np.array([step.n_converged for step in steps]),
            n_iter=np.array([step.n_iter for step in steps]),
        )

    def overlaps(self, teacher: HopfieldModel) -> NDArray[np.float64]:
        """Return absolute overlaps of each round's signs with each teacher pattern, (rounds, P)."""
        return np.abs(overlaps(signs(self.magnetizations), teacher.patterns))

    def coupling_errors(self, teacher: HopfieldModel) -> NDArray[np.float64]:
        """Return the relative error of J^r after each round; ε is this over N(N-1)/2."""
        return coupling_error_path(self.magnetizations, teacher.patterns)
