"""How the energy of chains settles, and how fast they forget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Equilibration:
    """Energies along a set of chains, and how fast they forget.

    Attributes
    ----------
    energies : array of shape (n_sweeps, n_chains)
        Energy per spin after every sweep.
    """

    energies: NDArray[np.float64]

    @property
    def stationary(self) -> NDArray[np.float64]:
        """Energies of the second half of the sweeps."""
        return self.energies[len(self.energies) // 2 :]

    @property
    def autocorrelation(self) -> NDArray[np.float64]:
        """Autocorrelation of the energy against the lag in sweeps, averaged over chains.

        Measured on the second half about the mean of all chains, so that chains stuck at
        different energies show as a correlation that does not decay.
        """
        e = self.stationary - self.stationary.mean()
        n_sweeps = len(e)
        covariance = np.array(
            [np.mean(e[: n_sweeps - lag] * e[lag:]) for lag in range(max(1, n_sweeps // 2))]
        )
        if covariance[0] == 0:
            return np.ones_like(covariance)
        correlation: NDArray[np.float64] = covariance / covariance[0]
        return correlation

    @property
    def autocorrelation_time(self) -> float:
        """Integrated autocorrelation time in sweeps, summed up to the first negative lag."""
        rho = self.autocorrelation
        negative = np.flatnonzero(rho <= 0)
        cut = int(negative[0]) if negative.size else len(rho)
        return float(1 + 2 * rho[1:cut].sum())

    @property
    def drift(self) -> float:
        """Shift of the mean energy between the third and the last quarter, in standard errors."""
        third, last = np.array_split(self.stationary, 2)
        n_chains = self.energies.shape[1]
        error = np.hypot(third.mean(axis=0).std(), last.mean(axis=0).std()) / np.sqrt(n_chains)
        return float(abs(last.mean() - third.mean()) / error) if error > 0 else 0.0

    @property
    def equilibrated(self) -> bool:
        """Chains long against their memory (tenfold), and no drift beyond four errors."""
        return self.autocorrelation_time * 10 < len(self.energies) and self.drift < 4

    def __str__(self) -> str:
        n_sweeps, n_chains = self.energies.shape
        verdict = "looks equilibrated" if self.equilibrated else "NOT equilibrated: more sweeps"
        return (
            f"{n_chains} chains of {n_sweeps} sweeps: energy per spin "
            f"{self.energies[0].mean():.4f} after the first, {self.stationary.mean():.4f} ± "
            f"{self.stationary.mean(axis=0).std():.4f} over the second half; "
            f"autocorrelation time {self.autocorrelation_time:.1f} sweeps, "
            f"drift {self.drift:.1f} standard errors; {verdict}"
        )
