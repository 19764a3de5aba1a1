"""Chains of a Hopfield model: what sampling needs between the model and the kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_ANNEALING_STAGES = 20
_UPDATES_PER_CALL = 2e8  # about a second on one core: how long Ctrl-C may have to wait
LANES = 32  # of the block Gibbs kernel, like the next; importing it here would start Numba
UNITS = 4
_DRAWS_WORTH_THREADS = 500_000


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


class _Lanes:
    """Independent chains in the layout of the sequential kernels: groups of lanes.

    Parameters
    ----------
    initial : array of shape (n_chains, n_spins), int8 ±1
        Where the chains start.
    rng : Generator
        Seeds every chain's own generator.
    """

    def __init__(self, initial: NDArray[np.int8], rng: np.random.Generator) -> None:
        self.n_chains, self.n_spins = initial.shape
        if self.n_spins >= 2**24:  # beyond it float32 does not count overlaps
            raise ValueError(f"sampling needs n_spins < 2**24, got {self.n_spins}")
        lanes = self._lanes()
        n_groups = -(-self.n_chains // lanes)
        padded = np.resize(initial, (n_groups * lanes, self.n_spins))
        self.spins = np.ascontiguousarray(
            padded.reshape(n_groups, lanes, self.n_spins).transpose(0, 2, 1)
        )
        # Drawn chain by chain, so that padding and grouping change no chain's generator.
        words = np.zeros((n_groups * lanes, 4), dtype=np.uint32)
        words[: self.n_chains] = rng.integers(0, 2**32, size=(self.n_chains, 4), dtype=np.uint32)
        words[~words.any(axis=1), 0] = 1  # the all-zero state is a fixed point of xoshiro
        self.generators = np.ascontiguousarray(words.reshape(n_groups, lanes, 4).transpose(0, 2, 1))

    def _lanes(self) -> int:
        """Lanes per group: wide enough for vector units, few enough to occupy every thread."""
        import numba

        share = -(-self.n_chains // numba.get_num_threads())
        return int(min(128, -(-share // 16) * 16))

    def states(self) -> NDArray[np.int8]:
        """Return the chains' states, (n_chains, n_spins)."""
        flat = self.spins.transpose(0, 2, 1).reshape(-1, self.n_spins)
        return np.ascontiguousarray(flat[: self.n_chains])


class EqualChains(_Lanes):
    """Chains of a model whose patterns are ±1 and equally strong, without fields.

    Parameters
    ----------
    patterns : array of shape (n_patterns, n_spins), int8 ±1
    initial : array of shape (n_chains, n_spins), int8 ±1
        Where the chains start.
    rng : Generator
        Seeds every chain's own generator.
    strength : float
        Of every pattern, in units of β; positive.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._chains import EqualChains
    >>> zeta = np.ones((1, 50), dtype=np.int8)
    >>> chains = EqualChains(zeta, np.repeat(zeta, 3, axis=0), np.random.default_rng(0))
    >>> chains.run(beta=2.0, n_sweeps=4).shape
    (4, 3)
    """

    def __init__(
        self,
        patterns: NDArray[np.int8],
        initial: NDArray[np.int8],
        rng: np.random.Generator,
        strength: float = 1.0,
    ) -> None:
        super().__init__(initial, rng)
        self.n_patterns = len(patterns)
        self.patterns = np.ascontiguousarray(patterns.T, dtype=np.float32)
        self.strength = strength

    def run(
        self, beta: float, n_sweeps: int, advance: Callable[[int], None] | None = None
    ) -> NDArray[np.float64]:
        """Sweep all chains; return Σ_μ (ζ·s)² after every sweep, (n_sweeps, n_chains)."""
        from dualtap._kernels.glauber import glauber_sweeps

        against = flip_odds(beta * self.strength, self.n_spins, self.n_patterns)
        recorded = []
        for sweeps in _calls(n_sweeps, self.n_spins * self.n_chains):
            squares = np.empty((len(self.spins), sweeps, self.spins.shape[2]))
            glauber_sweeps(self.spins, self.patterns, self.generators, against, sweeps, squares)
            recorded.append(squares.transpose(1, 0, 2).reshape(sweeps, -1)[:, : self.n_chains])
            if advance is not None:
                advance(sweeps)
        return np.concatenate(recorded) if recorded else np.empty((0, self.n_chains))


class GeneralChains(_Lanes):
    r"""Chains of any model: strengths of any sign, zeros in patterns, fields.

    A sweep sets the spins one after the other, each given all others by
    :math:`P(s_i = 1) = 1/(1 + e^{-2h_i})`; the odds are computed in single precision.

    Parameters
    ----------
    patterns : array of shape (n_patterns, n_spins), int8
        -1, 0 or +1; there may be none.
    strengths : array of shape (n_patterns,)
        In units of β, of any sign.
    fields : array of shape (n_spins,) or None
        The b_i.
    initial : array of shape (n_chains, n_spins), int8 ±1
        Where the chains start.
    rng : Generator
        Seeds every chain's own generator.

    Examples
    --------
    Repelled by a pattern, chains are rarely in its state:

    >>> import numpy as np
    >>> from dualtap._chains import GeneralChains
    >>> zeta = np.ones((1, 50), dtype=np.int8)
    >>> states = np.repeat(zeta, 3, axis=0)
    >>> chains = GeneralChains(zeta, np.array([-2.0]), None, states, np.random.default_rng(0))
    >>> chains.run(beta=1.0, n_sweeps=20)
    >>> bool((abs(chains.states().sum(axis=1)) < 25).all())
    True
    """

    def __init__(
        self,
        patterns: NDArray[np.int8],
        strengths: NDArray[np.float64],
        fields: NDArray[np.float64] | None,
        initial: NDArray[np.int8],
        rng: np.random.Generator,
    ) -> None:
        super().__init__(initial, rng)
        self.patterns = np.ascontiguousarray(patterns.T, dtype=np.float32)
        self.strengths = strengths
        self.fields = np.zeros(self.n_spins, dtype=np.float32)
        if fields is not None:
            self.fields[:] = fields

    def run(self, beta: float, n_sweeps: int, advance: Callable[[int], None] | None = None) -> None:
        """Sweep all chains."""
        from dualtap._kernels.heat_bath import heat_bath_sweeps

        scale = beta * self.strengths / self.n_spins
        weights = (self.patterns * scale).astype(np.float32)
        own = (self.patterns**2 @ scale).astype(np.float32)
        for sweeps in _calls(n_sweeps, self.n_spins * self.n_chains):
            heat_bath_sweeps(
                self.spins, self.patterns, weights, own, self.fields, self.generators, sweeps
            )
            if advance is not None:
                advance(sweeps)


class BlockChains:
    r"""Chains of equally strong ±1 patterns with fields, moved by block Gibbs steps.

    Gaussian hidden units (Hubbard and Stratonovich) make the spins independent:
    :math:`\lambda_\mu | s \sim N(\sqrt{\beta/N}\,\zeta^\mu\cdot s, 1)`, and given λ spin i feels
    :math:`\sqrt{\beta/N} \sum_\mu \zeta^\mu_i \lambda_\mu + b_i`, which need not be an integer.

    Parameters
    ----------
    patterns : array of shape (n_patterns, n_spins), int8 ±1
    fields : array of shape (n_spins,)
        The b_i.
    initial : array of shape (n_chains, n_spins), int8 ±1
        Where the chains start.
    rng : Generator
        Seeds every chain's own generator.
    strength : float
        Of every pattern, in units of β; positive.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._chains import BlockChains
    >>> zeta = np.ones((1, 50), dtype=np.int8)
    >>> chains = BlockChains(zeta, np.full(50, -100.0), zeta, np.random.default_rng(0))
    >>> chains.run(beta=0.1, n_sweeps=1)
    >>> bool((chains.states() == -1).all())
    True
    """

    def __init__(
        self,
        patterns: NDArray[np.int8],
        fields: NDArray[np.float64],
        initial: NDArray[np.int8],
        rng: np.random.Generator,
        strength: float = 1.0,
    ) -> None:
        self.n_chains, self.n_spins = initial.shape
        self.patterns = patterns
        self.strength = strength
        self.fields = padded(fields[None], 1)[0]
        even = self.n_chains + self.n_chains % 2  # the kernel moves two chains at a time
        self.spins = padded(initial, even)
        self.generators = np.resize(seeded_generators(self.n_chains, rng), (even, 4, LANES))

    def run(self, beta: float, n_sweeps: int, advance: Callable[[int], None] | None = None) -> None:
        """Make ``n_sweeps`` steps of λ given s, then s given λ, with all chains."""
        from dualtap._kernels.gibbs import gibbs_steps

        n_hidden = -(-len(self.patterns) // UNITS) * UNITS
        weights = padded(np.sqrt(beta * self.strength / self.n_spins) * self.patterns, n_hidden)
        held = np.empty((0, self.spins.shape[1]), dtype=np.float32)
        for sweeps in _calls(n_sweeps, self.n_spins * self.n_chains):
            with enough_threads(sweeps * self.spins.size):
                gibbs_steps(self.spins, held, weights, self.fields, self.generators, sweeps, False)
            if advance is not None:
                advance(sweeps)

    def states(self) -> NDArray[np.int8]:
        """Return the chains' states, (n_chains, n_spins)."""
        return self.spins[: self.n_chains, : self.n_spins].astype(np.int8, order="C")


def seeded_generators(n_chains: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """Return generator states of the block Gibbs kernel, (n_chains, 4, lanes).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._chains import seeded_generators
    >>> seeded_generators(2, np.random.default_rng(0)).shape
    (2, 4, 32)
    """
    words = rng.integers(0, 2**32, size=(n_chains, 4, LANES), dtype=np.uint32)
    words[:, 0] |= ~words.any(axis=1)  # the all-zero state is a fixed point of xoshiro
    return words


def padded(rows: NDArray[np.generic], n_rows: int) -> NDArray[np.float32]:
    """Return a float32 copy filled up with zeros, to ``n_rows`` and a multiple of the lanes.

    A unit without weights is sampled like the others and touches none of them; so is a chain.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._chains import padded
    >>> padded(np.ones((1, 50)), 4).shape
    (4, 64)
    """
    n_columns = -(-rows.shape[1] // LANES) * LANES
    n_columns += LANES * (n_columns % 1024 == 0)  # rows 4096 bytes apart would stall each other
    # On a boundary of cache lines, which vector loads of the kernel then never straddle.
    memory = np.zeros(n_rows * n_columns + 16, dtype=np.float32)
    first = -memory.ctypes.data // 4 % 16
    result = memory[first : first + n_rows * n_columns].reshape(n_rows, n_columns)
    result[: len(rows), : rows.shape[1]] = rows
    return result


@contextmanager
def enough_threads(n_draws: int) -> Iterator[None]:
    """Let threads share what takes milliseconds; waking them costs more than doing less alone.

    Examples
    --------
    >>> import numba
    >>> from dualtap._chains import enough_threads
    >>> with enough_threads(n_draws=100):
    ...     numba.get_num_threads()
    1
    """
    import numba

    n_threads = numba.get_num_threads()
    if n_draws < _DRAWS_WORTH_THREADS:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(n_threads)


def _calls(n_sweeps: int, updates_per_sweep: int) -> Iterator[int]:
    """Yield how many sweeps each call of a kernel makes."""
    chunk = max(1, int(_UPDATES_PER_CALL / updates_per_sweep))
    for done in range(0, n_sweeps, chunk):
        yield min(chunk, n_sweeps - done)
