r"""The Hopfield teacher: patterns, fields, energy, low-rank couplings, and sampling.

:math:`P(s) \propto \exp\left(\frac\beta2 \sum_{ij} J_{ij} s_i s_j + \sum_i b_i s_i\right)` with
:math:`J_{ij} = \frac1N \sum_\mu \zeta_i^\mu \zeta_j^\mu`; the fields b are zero in the paper.
J has rank P, so a spin update costs O(P).
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._chains import BlockChains, Chains, annealing_schedule
from dualtap._equilibration import Equilibration
from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap.couplings import HebbianCouplings
from dualtap.spins import as_spins

__all__ = ["Equilibration", "HopfieldModel"]

Start = Literal["auto", "patterns", "random", "annealed"]


class HopfieldModel:
    r"""A Hopfield network with given patterns at inverse temperature β, and fields on its spins.

    .. math:: P(s) \propto \exp\Big(\frac\beta2 \sum_{ij} J_{ij} s_i s_j + \sum_i b_i s_i\Big)

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, n_spins)
        The ζ^μ, any binary encoding.
    beta : float
        Inverse temperature, positive.
    fields : array-like of shape (n_spins,), optional
        The b_i, which β does not multiply; without them there are none, as in the paper.

    Attributes
    ----------
    patterns : array of shape (n_patterns, n_spins), int8 ±1
    beta : float
    fields : array of shape (n_spins,), float64 and read-only, or None

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=100, n_patterns=3, beta=2.0, random_state=0)
    >>> X = teacher.sample(12, random_state=1)
    >>> X.shape, X.dtype
    ((12, 100), dtype('int8'))
    >>> bool((abs(X @ teacher.patterns.T).max(axis=1) > 80).all())
    True

    Spins that lean to +1 on top of what the patterns say:

    >>> biased = dt.HopfieldModel(teacher.patterns, beta=0.5, fields=[0.5] * 100)
    >>> bool(biased.sample(50, random_state=1).mean() > 0.3)
    True
    """

    def __init__(self, patterns: ArrayLike, beta: float, fields: ArrayLike | None = None) -> None:
        spins = as_spins(patterns)
        if spins.summary.n_missing:
            raise ValueError("patterns must be complete: every entry -1 or +1")
        if not (np.isfinite(beta) and beta > 0):
            raise ValueError(f"beta must be a positive number, got {beta!r}")
        self.patterns = spins.values
        self.beta = float(beta)
        self.fields = None if fields is None else as_fields(fields, self.n_spins)

    @classmethod
    def random(
        cls,
        n_spins: int,
        n_patterns: int,
        beta: float,
        random_state: RandomState = None,
        fields: ArrayLike | None = None,
    ) -> HopfieldModel:
        """Return a model whose pattern entries are ±1 with equal odds, all independent.

        Parameters
        ----------
        n_spins, n_patterns : int
        beta : float
            Inverse temperature.
        random_state : int, RandomState, Generator or None
        fields : array-like of shape (n_spins,), optional
            The model's fields, as given.

        Returns
        -------
        HopfieldModel

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldModel.random(50, 2, beta=1.5, random_state=0)
        HopfieldModel(n_spins=50, n_patterns=2, beta=1.5)
        """
        if n_spins < 2 or n_patterns < 1:
            raise ValueError(
                "a model needs n_spins >= 2 and n_patterns >= 1, "
                f"got n_spins={n_spins}, n_patterns={n_patterns}"
            )
        rng = as_generator(random_state)
        bits = rng.integers(0, 2, size=(n_patterns, n_spins), dtype=np.int8)
        return cls(2 * bits - 1, beta, fields)

    def __repr__(self) -> str:
        return (
            f"HopfieldModel(n_spins={self.n_spins}, n_patterns={self.n_patterns}, "
            f"beta={self.beta:g}{'' if self.fields is None else ', with fields'})"
        )

    @property
    def n_spins(self) -> int:
        """Number of spins N."""
        return int(self.patterns.shape[1])

    @property
    def n_patterns(self) -> int:
        """Number of patterns P."""
        return len(self.patterns)

    def couplings(self) -> NDArray[np.float64]:
        """Return the dense matrix J of shape (n_spins, n_spins), diagonal P/N included.

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldModel([[1, -1]], beta=1.0).couplings()
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
        """
        zeta = self.patterns.astype(np.float64)
        J: NDArray[np.float64] = zeta.T @ zeta / self.n_spins
        return J

    def coupling_operator(self) -> HebbianCouplings:
        """Return J as an operator that costs O(N P), for the schemes and for products.

        Examples
        --------
        >>> import dualtap as dt
        >>> import numpy as np
        >>> model = dt.HopfieldModel.random(6, 2, beta=1.0, random_state=0)
        >>> v = np.arange(6.0)[None]
        >>> np.allclose(model.coupling_operator().dot(v), v @ model.couplings())
        True
        """
        return HebbianCouplings(self.patterns, np.float64)

    def energy(self, X: ArrayLike) -> NDArray[np.float64]:
        r"""Return the energy of every row of X.

        .. math:: H(s) = -\frac12 \sum_{ij} J_{ij} s_i s_j - \frac1\beta \sum_i b_i s_i

        The first sum includes i = j, as in the paper: a constant -P/2. Fields are divided by β,
        so that :math:`P(s) \propto e^{-\beta H(s)}` with them too.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,)

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldModel([[1, -1, 1, 1]], beta=1.0).energy([[1, -1, 1, 1], [1, 1, 1, -1]])
        array([-2., -0.])
        """
        values = as_spins(X).values
        if values.shape[1] != self.n_spins:
            raise ValueError(f"X has {values.shape[1]} spins, but the model has {self.n_spins}")
        s = values.astype(np.float64)
        overlaps = s @ self.patterns.T.astype(np.float64)
        energy: NDArray[np.float64] = -np.square(overlaps).sum(axis=1) / (2 * self.n_spins)
        return energy if self.fields is None else energy - s @ self.fields / self.beta

    @overload
    def sample(
        self,
        n_samples: int,
        *,
        start: Start | ArrayLike = ...,
        n_sweeps: int = ...,
        random_state: RandomState = ...,
        return_start: Literal[False] = ...,
        verbose: bool = ...,
    ) -> NDArray[np.int8]: ...

    @overload
    def sample(
        self,
        n_samples: int,
        *,
        start: Start | ArrayLike = ...,
        n_sweeps: int = ...,
        random_state: RandomState = ...,
        return_start: Literal[True],
        verbose: bool = ...,
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]: ...

    def sample(
        self,
        n_samples: int,
        *,
        start: Start | ArrayLike = "auto",
        n_sweeps: int = 100,
        random_state: RandomState = None,
        return_start: bool = False,
        verbose: bool = False,
    ) -> NDArray[np.int8] | tuple[NDArray[np.int8], NDArray[np.int8]]:
        r"""Draw samples by Glauber or Gibbs dynamics, one independent chain a sample.

        A sweep visits the sites in order; each is set to +1 with probability
        :math:`1/(1+e^{-2\beta h_i})`, :math:`h_i = \sum_{j\ne i} J_{ij} s_j`, exact to
        :math:`2^{-64}`, so every update obeys detailed balance at β. With fields a sweep is a
        block Gibbs step instead, in float32: P normal hidden units given the spins, then all
        spins given those. Chains run in parallel and each owns its generator: the samples do not
        depend on the number of threads.

        Parameters
        ----------
        n_samples : int
        start : {"auto", "patterns", "random", "annealed"} or array (n_samples, n_spins)
            Where chains start. "patterns": chain a at pattern a mod P, so that states are
            equally sampled. "random": independent fair spins. "annealed": random, and the first
            half of the sweeps raises β from 0 to its value in equal steps. "auto": "patterns"
            where β > 1, "random" below. Fields tell a pattern from its negative, and cold chains
            hardly cross between them: "patterns" then samples the former only.
        n_sweeps : int
            Sweeps over all spins before a chain is read.
        random_state : int, RandomState, Generator or None
        return_start : bool
            Also return the states the chains started from.
        verbose : bool
            Show a progress bar, on a terminal or in a notebook.

        Returns
        -------
        X : array of shape (n_samples, n_spins), int8 ±1
        start : array of the same shape
            Only with ``return_start``.

        Examples
        --------
        >>> import dualtap as dt
        >>> teacher = dt.HopfieldModel.random(100, 2, beta=2.0, random_state=0)
        >>> X, start = teacher.sample(4, random_state=1, return_start=True)
        >>> bool((start[:2] == teacher.patterns).all())
        True
        """
        if n_samples < 1 or n_sweeps < 0:
            raise ValueError(
                f"need n_samples >= 1 and n_sweeps >= 0, got {n_samples} and {n_sweeps}"
            )
        rng = as_generator(random_state)
        initial = self._start(n_samples, start, rng)
        chains = self._chains(initial, rng)
        with progress("sampling", n_sweeps, verbose) as advance:
            for beta, sweeps in annealing_schedule(self.beta, n_sweeps, _is_annealed(start)):
                chains.run(beta, sweeps, advance)
        return (chains.states(), initial) if return_start else chains.states()

    def dask_sample(
        self,
        n_samples: int,
        *,
        chunk_size: int = 1000,
        start: Start = "auto",
        n_sweeps: int = 100,
        random_state: RandomState = None,
    ) -> Any:
        """Return samples as a Dask array, drawn chunk by chunk on the workers that need them.

        Parameters
        ----------
        n_samples : int
        chunk_size : int
            Samples of a chunk. With another size other samples are drawn; the number of workers
            changes nothing.
        start, n_sweeps, random_state : as in :meth:`sample`

        Returns
        -------
        dask.array.Array of shape (n_samples, n_spins), int8 ±1

        Examples
        --------
        >>> import dualtap as dt
        >>> teacher = dt.HopfieldModel.random(100, 2, beta=2.0, random_state=0)
        >>> X = teacher.dask_sample(250, chunk_size=100, random_state=1)
        >>> X.chunks[0], X.compute().shape
        ((100, 100, 50), (250, 100))
        """
        import dask.array as da
        from dask.delayed import delayed

        if n_samples < 1 or chunk_size < 1:
            raise ValueError(
                f"need n_samples >= 1 and chunk_size >= 1, got {n_samples} and {chunk_size}"
            )
        first = range(0, n_samples, chunk_size)
        seeds = as_generator(random_state).integers(2**63, size=len(first))
        model, draw = delayed(self), delayed(_draw, pure=True)
        options = {"start": start, "n_sweeps": n_sweeps}
        sizes = [min(chunk_size, n_samples - k) for k in first]
        chunks = [
            da.from_delayed(  # type: ignore[no-untyped-call]
                draw(model, k, n, int(seed), options), (n, self.n_spins), np.int8
            )
            for k, n, seed in zip(first, sizes, seeds, strict=True)
        ]
        return da.concatenate(chunks)  # type: ignore[no-untyped-call]

    def equilibration(
        self,
        n_sweeps: int = 200,
        n_chains: int = 64,
        *,
        start: Start | ArrayLike = "auto",
        random_state: RandomState = None,
    ) -> Equilibration:
        """Run chains and report how their energy settles; print the result.

        Parameters
        ----------
        n_sweeps, n_chains : int
        start : as in :meth:`sample`
        random_state : int, RandomState, Generator or None

        Returns
        -------
        Equilibration

        Examples
        --------
        >>> import dualtap as dt
        >>> teacher = dt.HopfieldModel.random(200, 2, beta=0.5, random_state=0)
        >>> teacher.equilibration(random_state=1).equilibrated
        True
        """
        if n_sweeps < 8 or n_chains < 2:
            raise ValueError(f"need n_sweeps >= 8 and n_chains >= 2, got {n_sweeps} and {n_chains}")
        rng = as_generator(random_state)
        chains = self._chains(self._start(n_chains, start, rng), rng)
        energies = [
            self._energies(chains, beta, sweeps)
            for beta, sweeps in annealing_schedule(self.beta, n_sweeps, _is_annealed(start))
        ]
        return Equilibration(np.concatenate(energies))

    def _chains(self, initial: NDArray[np.int8], rng: np.random.Generator) -> Chains | BlockChains:
        if self.fields is None:
            return Chains(self.patterns, initial, rng)
        return BlockChains(self.patterns, self.fields, initial, rng)

    def _energies(
        self, chains: Chains | BlockChains, beta: float, n_sweeps: int
    ) -> NDArray[np.float64]:
        """Sweep at ``beta``; return the model's energy per spin after every sweep."""
        if isinstance(chains, Chains):  # whose kernel keeps the overlaps anyway
            return -chains.run(beta, n_sweeps) / (2 * self.n_spins**2)
        energies = np.empty((n_sweeps, chains.n_chains))
        for sweep in range(n_sweeps):
            chains.run(beta, 1)
            energies[sweep] = self.energy(chains.states()) / self.n_spins
        return energies

    def _start(
        self, n_samples: int, start: Start | ArrayLike, rng: np.random.Generator
    ) -> NDArray[np.int8]:
        if not isinstance(start, str):
            values = as_spins(start).values
            if values.shape != (n_samples, self.n_spins) or not values.all():
                raise ValueError(
                    f"start must hold {n_samples} complete states of {self.n_spins} spins, "
                    f"got shape {values.shape} with {np.sum(values == 0)} missing entries"
                )
            return values.copy()
        if start == "auto":
            start = "patterns" if self.beta > 1 else "random"
        if start == "patterns":
            return self.patterns[np.arange(n_samples) % self.n_patterns]
        if start in ("random", "annealed"):
            return 2 * rng.integers(0, 2, size=(n_samples, self.n_spins), dtype=np.int8) - 1
        raise ValueError(
            "start must be 'auto', 'patterns', 'random', 'annealed' or an array of states, "
            f"got {start!r}"
        )


def _draw(
    model: HopfieldModel, first: int, n_samples: int, seed: int, options: dict[str, Any]
) -> NDArray[np.int8]:
    """Return the chunk of samples that begins with this one."""
    in_turn = options["start"] == "patterns" or (options["start"] == "auto" and model.beta > 1)
    if in_turn:
        turn = np.arange(first, first + n_samples) % model.n_patterns
        options = options | {"start": model.patterns[turn]}
    drawn: NDArray[np.int8] = model.sample(n_samples, random_state=seed, **options)
    return drawn


def _is_annealed(start: Start | ArrayLike) -> bool:
    return isinstance(start, str) and start == "annealed"


def as_fields(fields: ArrayLike, n_spins: int) -> NDArray[np.float64]:
    """Return fields as a read-only float64 copy, or say what is wrong with them.

    Parameters
    ----------
    fields : array-like of shape (n_spins,)
    n_spins : int

    Returns
    -------
    array of shape (n_spins,)

    Examples
    --------
    >>> from dualtap.hopfield import as_fields
    >>> as_fields([0, 1, -2], n_spins=3)
    array([ 0.,  1., -2.])
    """
    b = np.array(fields, dtype=np.float64)
    if b.shape != (n_spins,):
        raise ValueError(
            f"fields must have shape ({n_spins},), one number a spin, got shape {b.shape}"
        )
    infinite = np.flatnonzero(~np.isfinite(b))
    if infinite.size:
        raise ValueError(
            f"fields must be finite, got {b[infinite[0]]} at spin {infinite[0]}; "
            "a field of 50 already fixes a spin"
        )
    b.flags.writeable = False
    return b
