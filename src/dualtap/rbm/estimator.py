"""`HopfieldRBM`: the estimator that learns an RBM from samples and reads patterns off it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from dualtap._namespace import origin
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap._validation import (
    HasMethods,
    Interval,
    StrOptions,
    checked_weights,
    fit_context,
    validated_spins,
)
from dualtap.hopfield import HopfieldModel
from dualtap.rbm.fitting import Callback, TrainedRBM
from dualtap.rbm.pcd import GradientName
from dualtap.rbm.priors import PRIORS, Prior
from dualtap.rbm.run_files import check_checkpoint, resumed_run
from dualtap.rbm.samples import training_set
from dualtap.rbm.start import Init

_FREE = frozenset(
    {"max_updates", "max_seconds", "early_stopping", "beta", "verbose", "random_state"}
)


_PAPER: dict[str, Any] = {
    "hidden": "gaussian",
    "fields": False,
    "learning_rate": "paper",
    "n_steps": 10,
    "validation": None,
    "max_updates": 2000,
    "look_every": 10,
}


class HopfieldRBM(TrainedRBM):
    r"""A restricted Boltzmann machine with ±1 visible units and hidden units of any prior.

    .. math:: P(s, \lambda) \propto \prod_\mu dP(\lambda_\mu)\,
              \exp\Big(\sum_{\mu i} W^\mu_i \lambda_\mu s_i + \sum_i b_i s_i\Big)

    Summing out Gaussian hidden units leaves a Hopfield model with couplings :math:`W^\top W`. The
    weights are learned by gradient ascent on the log-likelihood with persistent contrastive
    divergence (PCD-T). A share of the samples is held out; what is kept is the state that predicts
    their entries best. :meth:`paper` makes the machine of the paper, which holds out nothing.

    Parameters
    ----------
    n_hidden : "auto" or int
        N_h. "auto" starts with 64 and goes on to 256 if held-out samples gain from them.
    hidden : "auto", str or Prior
        The law of a hidden unit: "gaussian" is N(0, 1), "binary" ±1, "zero_one" 0/1, "uniform" on
        an interval, "relu" the positive half of a normal law, "laplace" and "spike_slab" sparse;
        or any object with the methods of :class:`dualtap.rbm.Prior`. "auto" makes 1200 updates with
        "gaussian" and with "binary" and goes on with the latter if held-out samples score better.
    beta : float, optional
        Inverse temperature in :meth:`couplings`. By default the mean square of the singular
        values that belong to patterns, which is β when the weights are :math:`\sqrt{\beta/N}\,\xi`.
    fields : "auto" or bool
        Learn visible fields b, from those that explain the means of the spins on. "auto" learns
        them if means differ from zero by more than chance and held-out samples are predicted
        better with them, by 0.001 per entry, after 1200 updates with and without.
    learning_rate : "auto", "paper" or float
        η in :math:`\Delta W = \eta\,(\langle\lambda s\rangle_{data} -
        \langle\lambda s\rangle_{model})`, means being taken per sample. "auto" is 0.1 over the
        largest variance of a mode of the data, at most 0.02 (0.01 for hidden units whose response
        is not bounded), and is cut twice to a quarter where held-out samples score no better.
        "paper" is 0.05 over the largest second moment.
    batch_size : int
        Samples per update.
    n_chains : int
        Markov chains of PCD, started at random and kept.
    n_steps : int
        T, block Gibbs steps per update.
    estimate : {"pcd", "cd", "tempering"}
        "cd" starts the chains at the mini-batch in every update instead; "tempering" gives every
        chain replicas at smaller weights and lets them exchange states, which takes as many times
        longer as there are rungs (up to 30 for 1000 spins), and keeps all clusters in reach.
    momentum : float in [0, 1)
        Share of the last change that is repeated.
    weight_decay : float
        Pull of weights to zero; subtracted from the gradient as ``weight_decay * W``.
    centering : bool
        Centre hidden units in the gradient of the weights; needs ``fields``.
    validation : float or None
        Share of the samples held out, of which at most 256 are looked at; None for none. Of fewer
        than ten samples none is held out.
    max_updates : int
    max_seconds : float, optional
        Wall time after which training stops.
    early_stopping : bool
        Stop when the score of held-out samples no longer rises, or, if none are held out, when
        that of training samples flattens: when over the last tenth of the updates it rose by less
        than 4 % of its whole rise, and no further singular value is on its way up.
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
    n_updates_, best_update_ : int
        Updates made, and those that led to what is kept.
    stop_reason_ : {"flat", "validation", "diverged", "max_updates", "max_seconds", "callback", ""}
        Empty while training goes on, and after :meth:`partial_fit`. "flat": the score no longer
        rises; "validation": that of held-out samples falls while that of training samples rises.
    learning_rate_ : float
        η in use.
    singular_values_ : array of shape (n_hidden,)
        Of W, in descending order.
    n_patterns_ : int
        One for each singular value above the widest gap, if as many are found. Without a gap, one
        for each direction of the data above the noise edge if units are Gaussian, there are no
        fields and samples were held out; else 0. These are refined with the samples.
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
    >>> rbm.hidden_, rbm.n_patterns_
    ('gaussian', 3)
    >>> print(dt.metrics.match(rbm.patterns_, teacher.patterns))
    3 of 3 patterns recovered (overlap > 0.9), mean overlap 1.000, smallest 1.000
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_hidden": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "hidden": [
            StrOptions({"auto", *PRIORS}),
            HasMethods(["log_normalizer", "mean", "sample"]),
        ],
        "beta": [Interval(Real, 0, None, closed="neither"), None],
        "fields": [StrOptions({"auto"}), "boolean"],
        "learning_rate": [
            StrOptions({"auto", "paper"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "estimate": [StrOptions({"pcd", "cd", "tempering"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "centering": ["boolean"],
        "validation": [Interval(Real, 0, 1, closed="neither"), None],
        "max_updates": [Interval(Integral, 1, None, closed="left")],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "early_stopping": ["boolean"],
        "look_every": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_hidden: int | Literal["auto"] = "auto",
        *,
        hidden: str | Prior = "auto",
        beta: float | None = None,
        fields: bool | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto", "paper"] = "auto",
        batch_size: int = 100,
        n_chains: int = 100,
        n_steps: int = 2,
        estimate: GradientName = "pcd",
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        centering: bool = False,
        validation: float | None = 0.2,
        max_updates: int = 20_000,
        max_seconds: float | None = None,
        early_stopping: bool = True,
        look_every: int = 50,
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
        self.validation = validation
        self.max_updates = max_updates
        self.max_seconds = max_seconds
        self.early_stopping = early_stopping
        self.look_every = look_every
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_hidden: int = 30, **options: Any) -> Self:
        """Return the RBM of the paper: Gaussian units, no fields, PCD-10, all samples, one rate.

        Parameters
        ----------
        n_hidden : int
        **options
            Other parameters of the class.

        Returns
        -------
        HopfieldRBM
            Not fitted.

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldRBM.paper(15).validation is None
        True
        """
        return cls(n_hidden, **(_PAPER | options))

    @fit_context()
    def fit(
        self,
        X: Any,
        y: None = None,
        *,
        sample_weight: ArrayLike | None = None,
        validation_samples: Any = None,
        init: Init | None = None,
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
        sample_weight : array-like of shape (n_samples,), optional
            How many samples each row stands for. Whole numbers give the run of
            ``np.repeat(X, sample_weight, axis=0)``, bit for bit; otherwise rows are drawn in
            proportion to their weights.
        validation_samples : array-like of shape (n_held_out, n_spins), optional
            Samples to choose by, instead of a share of X.
        init : array-like, "data", "random" or fitted HopfieldPatterns or DualTAP, optional
            Initial weights of the first hidden units: weights of shape (n_given, n_spins), those
            of the patterns of a fitted model, or "data": the modes of the data above the noise
            edge. Those of other units are random and small. The default is "data" for Gaussian
            units if samples are held out, else "random". Not with ``resume_from``.
        teacher : HopfieldModel, optional
            The model that made the samples. Its couplings are compared with those learned, in
            ``history_.error`` and on the progress bar; training never sees it. Ignored unless
            hidden units are Gaussian.
        callbacks : iterable of callable
            Called with the estimator, in the state it is in, every ``look_every`` updates. One
            that returns True stops the training.
        checkpoint : str or Path, optional
            An ``.npz`` file that receives the run every few seconds, at its end, and on Ctrl-C.
            :func:`dualtap.load` reads it. An existing file is refused unless it is the one in
            ``resume_from``.
        resume_from : str or Path, optional
            Go on with the run in this file, on the same samples and with the same parameters
            (only ``max_updates``, ``max_seconds``, ``early_stopping``, ``beta`` and ``verbose``
            may differ): the end is the same, bit for bit, as without the interruption.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If training diverged, was cut short, or found nothing beyond independent spins.
        """
        spins = validated_spins(self, X, reset=True)
        if teacher is not None and teacher.n_spins != spins.n_spins:
            raise ValueError(f"the teacher has {teacher.n_spins} spins, X has {spins.n_spins}")
        self._encoding = spins.encoding
        self._beside = None
        if validation_samples is not None:
            self._beside = validated_spins(self, validation_samples).values
        weights = checked_weights(sample_weight, spins.n_samples)
        self._weights = spins.weights if weights is None else weights
        path = None if checkpoint is None else Path(checkpoint)
        if path is not None:
            check_checkpoint(path, None if resume_from is None else Path(resume_from))
        if resume_from is None:
            run = self._start(spins, init, teacher)
        elif init is None:
            run = resumed_run(
                Path(resume_from), self._fingerprint(spins), self._stored_parameters(), _FREE
            )
        else:
            raise ValueError("init is where a new run starts: give either init or resume_from")
        run = run.moved(origin(X))
        self._keep(run)
        try:
            self._follow(spins, run, teacher, list(callbacks), path)
            self._keep(self._run.on_host(), finished=True)
            self._keep(self._with_patterns(self._run, spins), finished=True)
        finally:
            self._keep(self._run.on_host(), finished=True)
            if path is not None:  # also after Ctrl-C: nothing that was learned is lost
                self.write(path, force=True)
        self._warn(spins)
        return self

    @fit_context()
    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Make one pass over X, an update for every mini-batch in the order given.

        No sample is held out; "auto" stands for 64 Gaussian hidden units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            The first call sets the learning rate ("auto"), whether there are fields, and the
            number of spins.
        y : ignored

        Returns
        -------
        self
        """
        first = not hasattr(self, "_run")
        spins = validated_spins(self, X, reset=first)
        if first:
            rng = as_generator(self.random_state)
            self._weights = self._beside = None
            data = training_set(spins, None, int(rng.integers(2**62)))
            run = self._new_run(data, *self._candidates(data)[0], None, rng)
        else:
            run = self._continued()
        run = run.moved(origin(X))
        self._keep(run)
        n_batches = -(-spins.n_samples // self.batch_size)
        with one_blas_thread():
            for rows in np.array_split(np.arange(spins.n_samples), n_batches):
                batch = spins.take(rows).values
                run = run.after_update(batch, self._prior(), self._ascent(run))
                if run.stop_reason:
                    break
        self._keep(replace(run, best=None).on_host(), finished=True)
        self._warn(spins)
        return self
