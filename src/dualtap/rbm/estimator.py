"""`HopfieldRBM`: the estimator that learns an RBM from samples and reads patterns off it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from dualtap._namespace import origin
from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap._validation import validated_spins
from dualtap.hopfield import HopfieldModel
from dualtap.rbm.learned import LearnedRBM
from dualtap.rbm.pcd import Ascent, Estimate
from dualtap.rbm.priors import PRIORS, FloatArray, GaussianPrior, Prior, response
from dualtap.rbm.run import (
    Run,
    check_checkpoint,
    checked_init,
    largest_second_moment,
    resumed_run,
    start_run,
    train,
)
from dualtap.spins import Spins

Callback = Callable[["HopfieldRBM"], object]

_RATE = 0.05  # of "auto", times the inverse of the largest curvature
_CHECKPOINT_SECONDS = 5.0
_FREE_TO_CHANGE = frozenset({"max_updates", "early_stopping", "beta", "verbose", "random_state"})


class HopfieldRBM(LearnedRBM):
    r"""A restricted Boltzmann machine with ±1 visible and Gaussian (or ±1) hidden units.

    .. math:: P(s, \lambda) \propto \exp\Big(-\tfrac12\sum_\mu\lambda_\mu^2
              + \sum_{\mu i} W^\mu_i \lambda_\mu s_i + \sum_i b_i s_i\Big)

    Summing out the hidden units leaves a Hopfield model with couplings :math:`W^\top W`. The
    weights are learned by gradient ascent on the log-likelihood with persistent contrastive
    divergence (PCD-T).

    Parameters
    ----------
    n_hidden : int
        N_h, more than the patterns to be expected: units that are not needed stay idle.
    hidden : str or Prior
        The law of a hidden unit: "gaussian" is N(0, 1), "binary" ±1, "zero_one" 0/1, "uniform" on
        an interval, "relu" the positive half of a normal law, "laplace" and "spike_slab" sparse;
        or any object with the methods of :class:`dualtap.rbm.Prior`.
    beta : float, optional
        Inverse temperature in :meth:`couplings`. By default the mean square of the singular
        values that belong to patterns, which is β when the weights are :math:`\sqrt{\beta/N}\,\xi`.
    fields : bool
        Learn visible fields b. They take up the means of the spins, which otherwise appear as a
        pattern.
    learning_rate : "auto" or float
        η in :math:`\Delta W = \eta\,(\langle\lambda s\rangle_{data} -
        \langle\lambda s\rangle_{model})`, means being taken per sample. While weights are
        small, a mode of the data with second moment Λ grows by the factor 1 + η(Λ - 1) an
        update; with Gaussian hidden units training blows up when η is of the order of 1/Λ.
        "auto" is 0.05 divided by the largest Λ for Gaussian hidden units, 0.05 for ±1 ones and
        for visible fields, whose gradients are bounded.
    batch_size : int
        Samples an update sees.
    n_chains : int
        Markov chains of PCD, started at random and kept.
    n_steps : int
        T, block Gibbs steps an update.
    estimate : {"pcd", "cd"}
        "cd" starts the chains at the mini-batch in every update instead.
    momentum : float in [0, 1)
        Share of the last change that is repeated.
    weight_decay : float
        Pull of weights to zero; subtracted from the gradient as ``weight_decay * W``.
    centering : bool
        Centre hidden units in the gradient of the weights; needs ``fields``.
    max_updates : int
    early_stopping : bool
        Stop when the pseudo-likelihood flattens: when over the last tenth of the updates it rose
        by less than 4 % of its whole rise, and no further singular value is on its way up. The
        error of the couplings is smallest about there, or as small as it gets.
    look_every : int
        Updates between two entries of ``history_``.
    random_state : int, RandomState, Generator or None
    verbose : bool
        Show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    components_ : array of shape (n_hidden, n_spins), float32
        The weights W.
    fields_ : array of shape (n_spins,), float32
        Visible fields b.
    hidden_ : str
        Name of the prior of the hidden units.
    history_ : LearningCurve
        What :meth:`fit` saw every ``look_every`` updates.
    n_updates_ : int
        Updates made.
    stop_reason_ : {"flat", "max_updates", "diverged", "callback", ""}
        Empty while training goes on, and after :meth:`partial_fit`.
    learning_rate_ : float
        η in use.
    singular_values_ : array of shape (n_hidden,)
        Of W, in descending order.
    n_patterns_ : int
        One for each singular value above the widest gap, if as many are found; 0 without a gap.
    patterns_ : array of shape (n_patterns, n_spins), int8
        ±1 vectors that span the same space as the singular vectors above the gap. The weights
        know the patterns up to a rotation only; independence over sites undoes it.
    beta_ : float
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=300, n_patterns=3, beta=2.0, random_state=0)
    >>> X = teacher.sample(200, random_state=1)
    >>> rbm = dt.HopfieldRBM(n_hidden=8, random_state=0).fit(X)
    >>> rbm.stop_reason_, rbm.n_patterns_
    ('flat', 3)
    >>> print(dt.metrics.match(rbm.patterns_, teacher.patterns))
    3 of 3 patterns recovered (overlap > 0.9), mean overlap 1.000, smallest 1.000
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "hidden": [StrOptions(set(PRIORS)), HasMethods(["log_normalizer", "mean", "sample"])],
        "beta": [Interval(Real, 0, None, closed="neither"), None],
        "fields": ["boolean"],
        "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "estimate": [StrOptions({"pcd", "cd"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "centering": ["boolean"],
        "max_updates": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "look_every": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_hidden: int = 30,
        *,
        hidden: str | Prior = "gaussian",
        beta: float | None = None,
        fields: bool = False,
        learning_rate: float | Literal["auto"] = "auto",
        batch_size: int = 100,
        n_chains: int = 100,
        n_steps: int = 10,
        estimate: Estimate = "pcd",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        centering: bool = False,
        max_updates: int = 2000,
        early_stopping: bool = True,
        look_every: int = 10,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_hidden = n_hidden
        self.hidden = hidden
        self.beta = beta
        self.fields = fields
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_chains = n_chains
        self.n_steps = n_steps
        self.estimate = estimate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.centering = centering
        self.max_updates = max_updates
        self.early_stopping = early_stopping
        self.look_every = look_every
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        init: ArrayLike | None = None,
        teacher: HopfieldModel | None = None,
        callbacks: Iterable[Callback] = (),
        checkpoint: str | Path | None = None,
        resume_from: str | Path | None = None,
    ) -> Self:
        """Learn the weights from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            ±1, 0/1 or boolean; NaN or None where a value is missing. Missing entries are sampled
            from the model at every update. Sparse matrices are 0/1. A tensor of PyTorch, or an
            array of any library that follows the array API standard, is trained on where it is:
            weights, chains and gradients are on its device, samples and random numbers come
            from the host. What is learned is given as arrays of NumPy in any case.
        y : ignored
        init : array-like of shape (n_given, n_spins), optional
            Initial weights of the first hidden units, for instance ``np.sqrt(beta / n_spins) *
            patterns``; those of the others are random and small. Not with ``resume_from``.
        teacher : HopfieldModel, optional
            The model that made the samples. Its couplings are compared with those learned, in
            ``history_.error`` and on the progress bar; training never sees it. Ignored for ±1
            hidden units.
        callbacks : iterable of callable
            Called with the estimator, in the state it is in, every ``look_every`` updates. One
            that returns True stops the training.
        checkpoint : str or Path, optional
            An ``.npz`` file that receives the run every few seconds, at its end, and on Ctrl-C.
            :func:`dualtap.load` reads it. An existing file is refused unless it is the one in
            ``resume_from``.
        resume_from : str or Path, optional
            Go on with the run in this file, on the same samples and with the same parameters
            (only ``max_updates``, ``early_stopping``, ``beta`` and ``verbose`` may differ): the
            end is the same, bit for bit, as without the interruption.

        Returns
        -------
        self
        """
        spins = validated_spins(self, X, reset=True)
        if teacher is not None and teacher.n_spins != spins.n_spins:
            raise ValueError(f"the teacher has {teacher.n_spins} spins, X has {spins.n_spins}")
        self._encoding = spins.encoding
        path = None if checkpoint is None else Path(checkpoint)
        if path is not None:
            check_checkpoint(path, None if resume_from is None else Path(resume_from))
        if resume_from is None:
            run = self._start(spins, checked_init(init, self.n_hidden, spins.n_spins))
        elif init is None:
            run = resumed_run(Path(resume_from), spins, self._stored_parameters(), _FREE_TO_CHANGE)
        else:
            raise ValueError("init is where a new run starts: give either init or resume_from")
        run = run.moved(origin(X))
        self._keep(run)
        try:
            self._follow(spins, run, teacher, list(callbacks), path)
        finally:
            self._keep(self._run.on_host())
            if path is not None:  # also after Ctrl-C: nothing that was learned is lost
                self.write(path, force=True)
        self._warn()
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Make one pass over X, an update for every mini-batch in the order given.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            The first call sets the learning rate ("auto") and the number of spins.
        y : ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "_run")
        spins = validated_spins(self, X, reset=first)
        run = (self._start(spins) if first else self._continued()).moved(origin(X))
        n_batches = -(-spins.n_samples // self.batch_size)
        with one_blas_thread():
            for rows in np.array_split(np.arange(spins.n_samples), n_batches):
                batch = spins.take(rows).values
                run = run.after_update(batch, self._prior(), self._ascent(run))
                if run.stop_reason:
                    break
        self._keep(run.on_host())
        self._warn()
        return self

    def _follow(
        self,
        X: Spins,
        run: Run,
        teacher: HopfieldModel | None,
        callbacks: list[Callback],
        path: Path | None,
    ) -> None:
        """Let the run go on to its end; after every update the estimator holds it."""
        runs = train(
            run,
            X,
            self._prior(),
            self._ascent(run),
            batch_size=self.batch_size,
            look_every=self.look_every,
            max_updates=self.max_updates,
            early_stopping=self.early_stopping,
            teacher=teacher if isinstance(self._prior(), GaussianPrior) else None,
        )
        written = time.monotonic()
        with one_blas_thread(), progress("updates", self.max_updates, bool(self.verbose)) as bar:
            bar(run.update)
            for now in runs:
                bar(now.update - run.update, str(now.curve))
                run = now
                self._keep(run)
                if run.update % self.look_every or run.stop_reason == "diverged":
                    continue
                answers = [callback(self) for callback in callbacks]
                if any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers):
                    self._keep(replace(run, stop_reason="callback"))
                    break
                if path is not None and time.monotonic() - written > _CHECKPOINT_SECONDS:
                    self.write(path, force=True)
                    written = time.monotonic()

    def _start(self, X: Spins, init: FloatArray | None = None) -> Run:
        if self.centering and not self.fields:
            raise ValueError("centering=True needs fields=True: it moves weight into the fields")
        rng = as_generator(self.random_state)
        seed = int(rng.integers(2**62))
        return start_run(
            X,
            self.n_hidden,
            self.n_chains if self.estimate == "pcd" else self.batch_size,
            self.batch_size,
            self._rates(X, rng),
            seed,
            init,
        )

    def _continued(self) -> Run:
        """Return the run so far, for more of the same."""
        n_hidden, most = len(self._run.state.weights), len(self._run.state.imputing)
        if self.n_hidden != n_hidden or self.batch_size > most:
            raise ValueError(
                f"training began with n_hidden={n_hidden} and batch_size={most}, and cannot go on "
                f"with {self.n_hidden} and {self.batch_size}: use fit to begin anew"
            )
        return replace(self._run, stop_reason="")

    def _rates(self, X: Spins, rng: np.random.Generator) -> tuple[float, float]:
        """Return the factors of the gradients of weights and fields."""
        if self.learning_rate != "auto":
            rate = float(self.learning_rate)
            return rate, rate * self.fields
        gain = response(self._prior())
        curvature = max(1.0, gain * largest_second_moment(X, rng)) if gain > 0.01 else 1.0
        return _RATE / curvature, _RATE * self.fields

    def _ascent(self, run: Run) -> Ascent:
        return Ascent(
            run.learning_rate,
            run.fields_rate,
            n_steps=self.n_steps,
            estimate=self.estimate,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            centering=self.centering,
        )

    def _warn(self) -> None:
        """Say so when training ended for a reason the user should act on."""
        if self.stop_reason_ == "diverged":
            advice = (
                f"training diverged after update {self.n_updates_}, whose state is kept: "
                f"the learning rate ({self.learning_rate_:.3g}) is too large for these data, "
                'try a tenth of it, or "auto"'
            )
        elif self.stop_reason_ == "max_updates" and self.early_stopping:
            advice = (
                f"the pseudo-likelihood still rises after {self.n_updates_} updates: "
                "raise max_updates"
            )
        else:
            return
        warnings.warn(advice, ConvergenceWarning, stacklevel=4)  # past scikit-learn's wrapper
