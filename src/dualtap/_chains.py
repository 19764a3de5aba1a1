"""Chains of a Hopfield model: what sampling needs between the model and the kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_ANNEALING_STAGES = 20
_UPDATES_PER_CALL = 2e8  # about a second on one core: how long Ctrl-C may have to wait


def annealing_schedule(beta: float, n_sweeps: int, annealed: bool) -> list[tuple[float, int]]:
    """Return (β, sweeps) stages: all at β, or half of them on the way up from 0.

    Examples
    --------
    >>> from dualtap._chains import annealing_schedule
    >>> annealing_schedule(2.0, 100, annealed=False)
    [(2.0, 100)]
    """
    if not annealed:
        return [(beta, n_sweeps)]
    ramp = np.diff(np.linspace(0, n_sweeps // 2, _ANNEALING_STAGES + 1).astype(int))
    rising = [(beta * (k + 1) / _ANNEALING_STAGES, int(n)) for k, n in enumerate(ramp) if n]
    return [*rising, (beta, n_sweeps - n_sweeps // 2)]


def flip_odds(beta: float, n_spins: int, n_patterns: int) -> NDArray[np.uint64]:
    r"""Return :math:`2^{64} P(s_i = -\mathrm{sign}\,h_i)` for N|h_i| = 0, 1, … until it is zero.

    Examples
    --------
    >>> from dualtap._chains import flip_odds
    >>> flip_odds(beta=1.0, n_spins=2, n_patterns=1) / 2.0**64
    array([0.5       , 0.26894142, 0.11920292])
    """
    largest = n_spins * n_patterns
    vanishing = 32 * np.log(2) / beta * n_spins  # where exp(-2β|h|) = 2^-64
    k = np.arange(int(min(largest, np.ceil(vanishing))) + 1)
    odds: NDArray[np.uint64] = (expit(-2 * beta * k / n_spins) * 2.0**64).astype(np.uint64)
    return odds


class Chains:
    """Independent chains in the layout of the kernel: groups of lanes.

    Parameters
    ----------
    patterns : array of shape (n_patterns, n_spins), int8 ±1
    initial : array of shape (n_chains, n_spins), int8 ±1
        Where the chains start.
    rng : Generator
        Seeds every chain's own generator.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._chains import Chains
    >>> zeta = np.ones((1, 50), dtype=np.int8)
    >>> chains = Chains(zeta, np.repeat(zeta, 3, axis=0), np.random.default_rng(0))
    >>> chains.run(beta=2.0, n_sweeps=4).shape
    (4, 3)
    """

    def __init__(
        self, patterns: NDArray[np.int8], initial: NDArray[np.int8], rng: np.random.Generator
    ) -> None:
        self.n_patterns, self.n_spins = patterns.shape
        if self.n_spins >= 2**24:
            raise ValueError(f"sampling needs n_spins < 2**24, got {self.n_spins}")
        self.n_chains = len(initial)
        self.patterns = np.ascontiguousarray(patterns.T, dtype=np.float32)
        lanes = self._lanes()
        n_groups = -(-self.n_chains // lanes)
        padded = np.resize(initial, (n_groups * lanes, self.n_spins))
        self.spins = np.ascontiguousarray(
            padded.reshape(n_groups, lanes, self.n_spins).transpose(0, 2, 1)
        )
        # Drawn chain by chain, so that padding and grouping change nobody's generator.
        words = np.zeros((n_groups * lanes, 4), dtype=np.uint32)
        words[: self.n_chains] = rng.integers(0, 2**32, size=(self.n_chains, 4), dtype=np.uint32)
        words[~words.any(axis=1), 0] = 1  # the all-zero state is a fixed point of xoshiro
        self.generators = np.ascontiguousarray(words.reshape(n_groups, lanes, 4).transpose(0, 2, 1))

    def _lanes(self) -> int:
        """Lanes a group: wide enough for vector units, few enough to occupy every thread."""
        import numba

        share = -(-self.n_chains // numba.get_num_threads())
        return int(min(128, -(-share // 16) * 16))

    def run(
        self, beta: float, n_sweeps: int, advance: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """Sweep all chains; return Σ_μ (ζ·s)² after every sweep, (n_sweeps, n_chains)."""
        from dualtap._kernels.glauber import glauber_sweeps

        against = flip_odds(beta, self.n_spins, self.n_patterns)
        chunk = max(1, int(_UPDATES_PER_CALL / (self.n_spins * self.n_chains)))
        recorded = []
        for done in range(0, n_sweeps, chunk):
            sweeps = min(chunk, n_sweeps - done)
            squares = np.empty((len(self.spins), sweeps, self.spins.shape[2]))
            glauber_sweeps(self.spins, self.patterns, self.generators, against, sweeps, squares)
            recorded.append(squares.transpose(1, 0, 2).reshape(sweeps, -1)[:, : self.n_chains])
            if advance is not None:
                advance(sweeps)
        return np.concatenate(recorded) if recorded else np.empty((0, self.n_chains))

    def states(self) -> NDArray[np.int8]:
        """Return the chains' states, (n_chains, n_spins)."""
        flat = self.spins.transpose(0, 2, 1).reshape(-1, self.n_spins)
        return np.ascontiguousarray(flat[: self.n_chains])
