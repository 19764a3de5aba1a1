"""A training run at one moment: all that its future depends on, in memory and in a file.

Runs are values: an update makes a new one. Whoever stops between two of them, by Ctrl-C, by a
crash or by the end of a budget, holds a run that goes on as if nothing had happened.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Set
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from dualtap._chains import LANES, seeded_generators
from dualtap._files import atomic_write, check_free, known_suffix
from dualtap._namespace import Array
from dualtap._npy import read_arrays
from dualtap._schema import Entry, checked_arrays, parsed_fields, with_fields
from dualtap._threads import one_blas_thread
from dualtap.couplings import HebbianCouplings
from dualtap.hopfield import HopfieldModel
from dualtap.rbm.gibbs import Chains, random_chains
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import LearningCurve
from dualtap.rbm.pcd import Ascent, Gradient, Training, has_diverged, step
from dualtap.rbm.priors import Prior
from dualtap.recovery.published.starts import leading_eigenpair
from dualtap.spins import DenseSpins, Spins

Samples = Spins | NDArray[np.int8]
"""±1 with 0 for missing entries; rows are taken out as they are needed."""

SCHEMA = 1
_WATCHED_SAMPLES = 64
_MOST_SAMPLES = 1000
FIRST_SINGULAR_VALUE = 0.1  # of the weights; below one, where they begin to matter


@dataclass(frozen=True)
class Run:
    """A training run at one moment.

    Attributes
    ----------
    state : Training
        In any namespace, on any device; all else is on the host.
    curve : LearningCurve
    update : int
        Updates made.
    seed : int
        Of the order of samples and of the looks; chains own their generators.
    learning_rate, fields_rate : float
        The factors in use, also when they were chosen from the data.
    data : str
        Fingerprint of the samples.
    stop_reason : str
        "flat", "max_updates", "diverged" or "callback"; "" while it goes on.
    """

    state: Training
    curve: LearningCurve
    update: int
    seed: int
    learning_rate: float
    fields_rate: float
    data: str
    stop_reason: str = ""

    def moved(self, x: Array) -> Run:
        """Return the same run where ``x`` is; goes on up to rounding, which chains amplify."""
        return replace(self, state=self.state.moved(x))

    def on_host(self) -> Run:
        """Return the same run with arrays of NumPy, as files have it."""
        return self.moved(np.empty(0, dtype=np.float32))

    def model(self, prior: Prior) -> RBM:
        """Return the RBM as it is now, on the host."""
        state = self.on_host().state
        return RBM(state.weights, state.fields, prior)

    def after_update(self, batch: NDArray[np.int8], prior: Prior, how: Ascent) -> Run:
        """Return the run one update later, or where it is and stopped if that diverges."""
        with np.errstate(over="ignore", invalid="ignore"):  # noticed below
            state = step(self.state, batch, prior, how)
        if has_diverged(state, prior):
            return replace(self, stop_reason="diverged")
        return replace(self, state=state, update=self.update + 1)

    def after_look(
        self, prior: Prior, X: NDArray[np.float32], teacher: HopfieldModel | None
    ) -> Run:
        """Return the run with its present state in the learning curve."""
        if self.update in self.curve.update[-1:]:
            return self
        rng = np.random.default_rng([self.seed, self.update])
        curve = self.curve.after_look(self.update, self.model(prior), X, rng, teacher)
        return replace(self, curve=curve)


def train(
    run: Run,
    X: Samples,
    prior: Prior,
    how: Ascent,
    *,
    batch_size: int,
    look_every: int,
    max_updates: int,
    early_stopping: bool,
    teacher: HopfieldModel | None,
) -> Iterator[Run]:
    """Yield the run as it is and after every update, until one of them has a reason to stop."""
    spins = _spins(X)
    order = batches(len(X), batch_size, run.seed, run.update)
    some = np.random.default_rng(run.seed).permutation(len(X))[:_WATCHED_SAMPLES]
    watched = spins.take(some).values.astype(np.float32)
    while True:
        if run.update % look_every == 0:
            run = run.after_look(prior, watched, teacher)
            if early_stopping and not run.stop_reason and run.curve.is_over():
                run = replace(run, stop_reason="flat")
        if run.update >= max_updates and not run.stop_reason:
            run = replace(run, stop_reason="max_updates")
        yield run
        if run.stop_reason:
            return
        run = run.after_update(spins.take(next(order)).values, prior, how)


def start_run(
    X: Samples,
    n_hidden: int,
    n_chains: int,
    batch_size: int,
    rates: tuple[float, float],
    seed: int,
    init: NDArray[np.floating[Any]] | None = None,
) -> Run:
    """Return a run before its first update: small random weights, random chains.

    Visible fields, when they are learned, start where they explain the means of the data. The
    first hidden units have the weights ``init``, if it is given.
    """
    spins = _spins(X)
    n_spins = spins.n_spins
    rng = np.random.default_rng(seed)
    scale = FIRST_SINGULAR_VALUE / np.sqrt(n_spins)
    weights = (scale * rng.standard_normal((n_hidden, n_spins))).astype(np.float32)
    if init is not None:
        weights[: len(init)] = init
    first_fields = np.zeros(n_spins, dtype=np.float32)
    if rates[1] > 0:
        first_fields[:] = _mean_fields(spins)
    state = Training(
        weights=weights,
        fields=first_fields,
        velocity=Gradient(np.zeros_like(weights), np.zeros_like(first_fields)),
        chains=random_chains(n_chains, n_spins, rng),
        imputing=seeded_generators(batch_size, rng),
    )
    return Run(state, LearningCurve.empty(n_hidden), 0, seed, *rates, data=fingerprint(X))


def checked_init(init: ArrayLike | None, n_hidden: int, n_spins: int) -> NDArray[np.float32] | None:
    """Return initial weights that fit the hidden units and the spins, None for none.

    Examples
    --------
    >>> from dualtap.rbm.run import checked_init
    >>> checked_init([[0.5, -0.5]], n_hidden=3, n_spins=2)
    array([[ 0.5, -0.5]], dtype=float32)
    """
    if init is None:
        return None
    weights: NDArray[np.float32] = check_array(
        init, dtype=np.float32, ensure_2d=False, input_name="init"
    )
    if weights.ndim != 2 or len(weights) > n_hidden or weights.shape[1] != n_spins:
        raise ValueError(
            f"init has shape {weights.shape}; it needs at most n_hidden={n_hidden} rows and "
            f"{n_spins} columns, one for each spin"
        )
    return weights


def batches(n_samples: int, batch_size: int, seed: int, first: int) -> Iterator[NDArray[np.int64]]:
    """Yield the samples of update ``first``, of the next one, and so on.

    Each epoch has its own permutation, a function of seed and epoch alone: any run can go on
    anywhere. The mini-batches of an epoch differ in size by one at most.

    Examples
    --------
    >>> from itertools import islice
    >>> from dualtap.rbm.run import batches
    >>> whole = list(islice(batches(5, 2, seed=0, first=0), 6))
    >>> rest = list(islice(batches(5, 2, seed=0, first=4), 2))
    >>> [len(batch) for batch in whole], [list(a) == list(b) for a, b in zip(whole[4:], rest)]
    ([2, 2, 1, 2, 2, 1], [True, True])
    """
    n_batches = -(-n_samples // batch_size)
    epoch, skip = divmod(first, n_batches)
    while True:
        order = np.random.default_rng([seed, epoch]).permutation(n_samples)
        yield from np.array_split(order, n_batches)[skip:]
        epoch, skip = epoch + 1, 0


def largest_second_moment(X: Samples, rng: np.random.Generator) -> float:
    r"""Return the largest eigenvalue of :math:`S^\top S / M`, from at most 1000 samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.run import largest_second_moment
    >>> X = np.ones((10, 30), dtype=np.int8)
    >>> round(largest_second_moment(X, np.random.default_rng(0)), 3)
    30.0
    """
    some = _spins(X).take(rng.permutation(len(X))[:_MOST_SAMPLES]).values
    with one_blas_thread():
        value, _ = leading_eigenpair(HebbianCouplings(some), rng)
    moment: float = value * X.shape[1] / len(some)
    return max(moment, 1.0)


def fingerprint(X: Samples) -> str:
    """Return a text that differs for different samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.run import fingerprint
    >>> fingerprint(np.ones((2, 3), dtype=np.int8))
    '2 samples of 3 spins, checksum ...'
    """
    spins, checksum = _spins(X), 0
    for rows in spins.blocks():
        checksum = zlib.crc32(spins.block(rows).tobytes(), checksum)
    return f"{X.shape[0]} samples of {X.shape[1]} spins, checksum {checksum:08x}"


def _spins(X: Samples) -> Spins:
    return X if isinstance(X, Spins) else DenseSpins(X, "-1/+1")


def _mean_fields(spins: Spins) -> NDArray[np.float64]:
    """Return the fields that alone explain the means of the data."""
    total = np.zeros(spins.n_spins, dtype=np.int64)
    observed = np.zeros(spins.n_spins, dtype=np.int64)
    for rows in spins.blocks():
        s = spins.block(rows)
        total += s.sum(axis=0)
        observed += np.count_nonzero(s, axis=0)
    # One more sample of each sign keeps the field of a constant spin finite.
    return np.arctanh(total / (observed + 2))


def write_run(
    path: Path,
    run: Run,
    parameters: dict[str, Any],
    feature_names: NDArray[Any] | None = None,
    *,
    force: bool = False,
) -> None:
    """Write a run and the parameters it was made with to an ``.npz`` file, atomically."""
    from dualtap import __version__

    known_suffix(path, (".npz",))
    state = run.on_host().state
    provenance = {
        "dualtap": __version__,
        "parameters": parameters,
        "run": {name: getattr(run, name) for name in _SCALARS},
    }
    columns = [column.name for column in fields(LearningCurve)]
    arrays = {f"curve_{name}": getattr(run.curve, name) for name in columns}
    if feature_names is not None:
        arrays["feature_names"] = np.asarray(feature_names).astype(str)
    with atomic_write(path, force=force) as file:
        np.savez(
            file,
            schema=np.array(SCHEMA),
            kind=np.array("rbm"),
            provenance=np.array(json.dumps(provenance)),
            weights=state.weights,
            fields=state.fields,
            velocity_weights=state.velocity.weights,
            velocity_fields=state.velocity.fields,
            chains=state.chains.spins.astype(np.int8),
            generators=state.chains.generators,
            imputing=state.imputing,
            **arrays,
        )


_SCALARS: dict[str, type] = {
    "update": int,
    "seed": int,
    "learning_rate": float,
    "fields_rate": float,
    "data": str,
    "stop_reason": str,
}
_ARRAYS = {
    "provenance": Entry("U"),
    "weights": Entry("float32", ("hidden", "N")),
    "fields": Entry("float32", ("N",)),
    "velocity_weights": Entry("float32", ("hidden", "N")),
    "velocity_fields": Entry("float32", ("N",)),
    "chains": Entry("int8", ("chains", "N"), -1, 1, smallest=1),
    "generators": Entry("uint32", ("generators", 4, LANES)),
    "imputing": Entry("uint32", ("batch", 4, LANES)),
    "curve_update": Entry("i", ("looks",), 0),
    "curve_pseudo_likelihood": Entry("f", ("looks",), nan=True),
    "curve_pseudo_likelihood_one_step": Entry("f", ("looks",), nan=True),
    "curve_singular_values": Entry("f", ("looks", "hidden"), 0),
    "curve_error": Entry("f", ("looks",), nan=True),
    "feature_names": Entry("U", ("N",), optional=True),
}


def read_run(path: Path) -> tuple[Run, dict[str, Any], NDArray[np.str_] | None]:
    """Read what :func:`write_run` wrote: the run, its parameters and names of spins if any."""
    known_suffix(path, (".npz",))
    contents = read_arrays(path)
    if not isinstance(contents, dict) or contents.get("kind") != "rbm" or "schema" not in contents:
        raise ValueError(f"{path} is not a training run of an RBM; HopfieldRBM writes them")
    try:
        schema = int(checked_arrays(contents, {"schema": Entry("iu")})["schema"])
        if schema == SCHEMA:
            return _rebuild(checked_arrays(contents, _ARRAYS, least={"N": 2, "hidden": 1}))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is incomplete or damaged: {error}") from None
    raise ValueError(
        f"{path} has schema {schema}, this version of dualtap reads up to {SCHEMA}; upgrade dualtap"
    )


def resumed_run(path: Path, X: Samples, parameters: dict[str, Any], may_differ: Set[str]) -> Run:
    """Read a run and check that it is one of these data and parameters, to go on with."""
    run, stored, _ = read_run(path)
    for name in sorted(parameters.keys() - may_differ):
        if stored.get(name) != parameters[name]:
            raise ValueError(
                f"{path} was trained with {name}={stored.get(name)!r}, not {parameters[name]!r}; "
                "a run goes on with the parameters it began with"
            )
    if run.data != fingerprint(X):
        raise ValueError(
            f"{path} was trained on other data ({run.data}) than these ({fingerprint(X)})"
        )
    if len(run.state.imputing) < parameters["batch_size"]:
        raise ValueError(f"{path} is damaged: it has too few random generators")
    return replace(run, stop_reason="")


def check_checkpoint(path: Path, resume_from: Path | None) -> None:
    """Raise unless the file can be written without the loss of another run."""
    again = resume_from is not None and resume_from.resolve() == path.resolve()
    check_free(path, force=True, formats=(".npz",))
    if path.exists() and not again:
        raise FileExistsError(
            f"the checkpoint {str(path)!r} exists: go on from it with resume_from (--resume), or "
            "remove it"
        )


def _rebuild(
    contents: dict[str, NDArray[Any]],
) -> tuple[Run, dict[str, Any], NDArray[np.str_] | None]:
    provenance = parsed_fields(contents["provenance"], run=dict, parameters=dict)
    told = {name: with_fields(provenance["run"], **_SCALARS)[name] for name in _SCALARS}
    generators, chains = contents["generators"], contents["chains"]
    if len(generators) < len(chains) or not len(chains):
        raise ValueError(f"there are {len(generators)} generators for {len(chains)} chains")
    for name in ("generators", "imputing"):
        if not contents[name].any(axis=1).all():  # such a one would never move
            raise ValueError(f"one of the random generators in {name} is zero")
    if min(told["update"], told["seed"], told["fields_rate"]) < 0 or told["learning_rate"] <= 0:
        raise ValueError("a number of the run is negative")
    state = Training(
        weights=contents["weights"],
        fields=contents["fields"],
        velocity=Gradient(contents["velocity_weights"], contents["velocity_fields"]),
        chains=Chains(chains.astype(np.float32), generators),
        imputing=contents["imputing"],
    )
    curve = LearningCurve(*(contents[f"curve_{column.name}"] for column in fields(LearningCurve)))
    return Run(state, curve, **told), provenance["parameters"], contents.get("feature_names")
