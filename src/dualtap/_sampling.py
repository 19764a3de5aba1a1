"""Samples of a model: everything that follows from its parameters by running chains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._chains import BlockChains, EqualChains, GeneralChains, annealing_schedule
from dualtap._equilibration import Equilibration
from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._starts import ChainStart, initial_states, patterns_in_turn, resolved_start

AnyChains = EqualChains | BlockChains | GeneralChains


class SampledModel(ABC):
    """What :class:`dualtap.HopfieldModel` does with its parameters once it has them.

    Attributes
    ----------
    patterns : array of shape (n_patterns, n_spins), int8
    strengths : array of shape (n_patterns,)
    beta : float
    fields : array of shape (n_spins,) or None
    """

    patterns: NDArray[np.int8]
    strengths: NDArray[np.float64]
    beta: float
    fields: NDArray[np.float64] | None

    @property
    def n_spins(self) -> int:
        """Number of spins N."""
        return int(self.patterns.shape[1])

    @property
    def n_patterns(self) -> int:
        """Number of patterns P."""
        return len(self.patterns)

    @abstractmethod
    def energy(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the energy of every row of X."""

    @overload
    def sample(
        self,
        n_samples: int,
        *,
        start: ChainStart | ArrayLike = ...,
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
        start: ChainStart | ArrayLike = ...,
        n_sweeps: int = ...,
        random_state: RandomState = ...,
        return_start: Literal[True],
        verbose: bool = ...,
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]: ...

    def sample(
        self,
        n_samples: int,
        *,
        start: ChainStart | ArrayLike = "auto",
        n_sweeps: int = 100,
        random_state: RandomState = None,
        return_start: bool = False,
        verbose: bool = False,
    ) -> NDArray[np.int8] | tuple[NDArray[np.int8], NDArray[np.int8]]:
        r"""Draw samples by Glauber or Gibbs dynamics, one independent chain per sample.

        A sweep visits the sites in order; each is set to +1 with probability
        :math:`1/(1+e^{-2h_i})`, where
        :math:`h_i = b_i + \sum_\mu \frac{g_\mu}N \zeta^\mu_i \sum_{j\ne i} \zeta^\mu_j s_j`.
        For equal positive strengths, no zeros and no fields this probability is exact to
        :math:`2^{-64}`; otherwise it is computed in float32. Equal positive strengths and no zeros
        with fields are sampled by block Gibbs steps instead: P normal hidden units given the
        spins, then all spins given those. Chains run in parallel and each has its own generator:
        the samples do not depend on the number of threads.

        Parameters
        ----------
        n_samples : int
        start : {"auto", "patterns", "random", "annealed"} or array (n_samples, n_spins)
            Where chains start. "patterns": at the attractive patterns in turn, so that states are
            equally sampled; spins that take no part in a pattern are random, and so are all if no
            pattern attracts. "random": independent random spins. "annealed": random, and the
            first half of the sweeps raises all strengths from 0 to their values in equal steps.
            "auto": "patterns" if some strength, times the share of spins in its pattern, exceeds
            1, else "random". Fields tell a pattern from its negative, and cold chains rarely cross
            between them: "patterns" then samples the former only.
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
        chains = self._make_chains(initial, rng)
        with progress("sampling", n_sweeps, verbose) as advance:
            for beta, sweeps in annealing_schedule(self.beta, n_sweeps, _is_annealed(start)):
                chains.run(beta, sweeps, advance)
        return (chains.states(), initial) if return_start else chains.states()

    def dask_sample(
        self,
        n_samples: int,
        *,
        chunk_size: int = 1000,
        start: ChainStart = "auto",
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
        start: ChainStart | ArrayLike = "auto",
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
        chains = self._make_chains(self._start(n_chains, start, rng), rng)
        energies = [
            self._energies(chains, beta, sweeps)
            for beta, sweeps in annealing_schedule(self.beta, n_sweeps, _is_annealed(start))
        ]
        return Equilibration(np.concatenate(energies))

    @property
    def _ratios(self) -> NDArray[np.float64]:
        """Strengths in units of β: all 1 if it was given."""
        return self.strengths / self.beta

    def _make_chains(self, initial: NDArray[np.int8], rng: np.random.Generator) -> AnyChains:
        ratios = self._ratios
        # Only these have integer local fields, or a hidden unit per pattern that is normal.
        alike = ratios.size > 0 and ratios[0] > 0 and bool(np.all(ratios == ratios[0]))
        if not (alike and self.patterns.all()):
            return GeneralChains(self.patterns, ratios, self.fields, initial, rng)
        if self.fields is None:
            return EqualChains(self.patterns, initial, rng, float(ratios[0]))
        return BlockChains(self.patterns, self.fields, initial, rng, float(ratios[0]))

    def _energies(self, chains: AnyChains, beta: float, n_sweeps: int) -> NDArray[np.float64]:
        """Sweep at ``beta``; return the model's energy per spin after every sweep."""
        if isinstance(chains, EqualChains):  # whose kernel keeps the overlaps anyway
            return -chains.strength * chains.run(beta, n_sweeps) / (2 * self.n_spins**2)
        energies = np.empty((n_sweeps, chains.n_chains))
        for sweep in range(n_sweeps):
            chains.run(beta, 1)
            energies[sweep] = self.energy(chains.states()) / self.n_spins
        return energies

    def _start(
        self, n_samples: int, start: ChainStart | ArrayLike, rng: np.random.Generator
    ) -> NDArray[np.int8]:
        return initial_states(start, n_samples, self.patterns, self.strengths, rng)


def _draw(
    model: SampledModel, first: int, n_samples: int, seed: int, options: dict[str, Any]
) -> NDArray[np.int8]:
    """Return the chunk of samples that begins with this one."""
    rng, patterns, g = as_generator(seed), model.patterns, model.strengths
    if resolved_start(options["start"], patterns, g) == "patterns":  # where the last chunk ended
        chains = np.arange(first, first + n_samples)
        options = options | {"start": patterns_in_turn(chains, patterns, g, rng)}
    drawn: NDArray[np.int8] = model.sample(n_samples, random_state=rng, **options)
    return drawn


def _is_annealed(start: ChainStart | ArrayLike) -> bool:
    return isinstance(start, str) and start == "annealed"
