"""What a trained RBM can be asked: hidden means, scores, samples, couplings, patterns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dualtap._chains import seeded_generators
from dualtap._files import stored_parameters
from dualtap._html import SummaryInNotebooks
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap._validation import TakesSpins, validated_spins
from dualtap.edges import HasCouplings, RowsOfJ, low_rank_rows
from dualtap.gaps import Conditionals, FillsGaps, LinearConditionals
from dualtap.rbm.effective import HiddenConditionals, two_body_factors
from dualtap.rbm.gibbs import Chains, advance
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import LearningCurve
from dualtap.rbm.patterns import Patterns, data_modes, mode_errors, patterns_from_weights
from dualtap.rbm.pcd import Training
from dualtap.rbm.priors import FloatArray, GaussianPrior, Prior, as_prior, prior_name
from dualtap.rbm.run import Run
from dualtap.rbm.run_files import prior_from_file, prior_in_files, read_run, write_run
from dualtap.rbm.samples import mean_fields
from dualtap.rbm.scores import HasScores
from dualtap.rbm.start import FIRST_SINGULAR_VALUE
from dualtap.rbm.tempering import run_tempered, tuned_chains
from dualtap.rbm.training import how_it_ended
from dualtap.spins import as_spins
from dualtap.spins.matrix import blocks_of

_LADDERS, _SWEEPS, _STEPS = 20, 20, 100  # of sample()


class LearnedRBM(
    HasScores,
    SummaryInNotebooks,
    TakesSpins,
    HasCouplings,
    FillsGaps,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """The part of :class:`HopfieldRBM` that follows from a training run."""

    hidden: str | Prior
    beta: float | None
    _run: Run
    _finished: bool
    _found: Patterns | None

    def transform(self, X: Any) -> FloatArray:
        """Return the means of the hidden units given each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            Missing entries take no part.

        Returns
        -------
        array of shape (n_samples, n_hidden)
        """
        check_is_fitted(self)
        return blocks_of(validated_spins(self, X), held=False).map(self.model().hidden_means)

    def sample(
        self,
        n_samples: int = 1,
        *,
        n_steps: int | None = None,
        tempering: bool = True,
        random_state: RandomState = None,
    ) -> NDArray[np.int8]:
        """Draw samples by parallel tempering, from where the chains of training ended.

        Chains of block Gibbs steps alone stay near the pattern or cluster where they start. With
        tempering they exchange states with replicas at smaller weights, down to independent spins,
        whose number and scales are found first (:mod:`dualtap.rbm.tempering`).

        Parameters
        ----------
        n_samples : int
        n_steps : int, optional
            Steps between two samples of one of 20 ladders; 20 by default. Without tempering, steps
            from the end of a chain of training to its sample; 100 by default.
        tempering : bool
            False for plain chains, which are faster, and enough if samples do not cluster.
        random_state : int, RandomState, Generator or None

        Returns
        -------
        array of shape (n_samples, n_spins), int8 ±1
        """
        check_is_fitted(self)
        n_steps = (_SWEEPS if tempering else _STEPS) if n_steps is None else n_steps
        if n_samples < 1 or n_steps < 1:
            raise ValueError(
                f"n_samples and n_steps must be at least 1, got {n_samples} and {n_steps}"
            )
        rng = as_generator(random_state)
        ends, model = self._kept().chains.target, self.model()
        n_chains = min(n_samples, _LADDERS) if tempering else n_samples
        start = ends[np.resize(rng.permutation(len(ends)), n_chains)]
        if not tempering:
            chains = Chains(start, seeded_generators(n_samples, rng))
            return advance(model, chains, n_steps).spins.astype(np.int8)
        with one_blas_thread():
            chains = tuned_chains(model, start, self._base(), rng)
            n_each = -(-n_samples // n_chains)
            found = run_tempered(model, chains, n_steps * n_each, n_steps)
        return found.states.reshape(-1, model.n_spins)[:n_samples]

    def _base(self) -> FloatArray:
        """Return fields of independent spins with the means of the chains of training."""
        state = self._kept()
        if not state.fields.any():
            return state.fields
        return mean_fields(state.chains.target.astype(np.int8))

    def couplings(self) -> NDArray[np.float64]:
        r"""Return the couplings of all pairs of spins.

        In :math:`P(s) \propto \exp(\sum_{i<j} J_{ij} s_i s_j + \dots)`, β included. With Gaussian
        hidden units there is nothing else but fields, and :math:`J = W^\top W`. Others make terms
        of more spins too; J is the coefficient of :math:`s_i s_j`
        (:mod:`dualtap.rbm.effective`), which for small weights is :math:`W^\top W` times the
        variance of the prior.

        Returns
        -------
        array of shape (n_spins, n_spins)
            Symmetric, zero diagonal. For many spins take :meth:`edges`, which does not form it.
        """
        return super().couplings()

    def _rows_of_couplings(self) -> RowsOfJ:
        return low_rank_rows(*two_body_factors(self.components_, self._prior()))

    def _usual_scores(self) -> NDArray[np.float64]:
        """Return scores of the chains of training in ascending order."""
        chains = as_spins(self._kept().chains.target)
        return np.sort(self.score_samples(chains))

    def _conditionals(self) -> Conditionals:
        W, b = self.components_, self.fields_
        if isinstance(self._prior(), GaussianPrior):
            return LinearConditionals(W, np.ones(len(W), np.float32), b)
        return HiddenConditionals(self.model())

    def mode_errors(self, X: Any, n_modes: int = 20) -> NDArray[np.float64]:
        r"""Return :math:`t_\alpha` of the first modes of X: what the weights miss of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
        n_modes : int

        Returns
        -------
        array of shape (n_modes,)
            1 for a mode outside the span of the weights, 0 inside. Weights span N_h of N
            directions, so a random mode has about :math:`\sqrt{1 - N_h/N}`.
        """
        check_is_fitted(self)
        return mode_errors(self.components_, data_modes(validated_spins(self, X).values, n_modes))

    def summary(self) -> str:
        """Return what was learned in a few lines: patterns, singular values, how training ended.

        Returns
        -------
        str

        Examples
        --------
        >>> import dualtap as dt
        >>> teacher = dt.HopfieldModel.random(n_spins=300, n_patterns=3, beta=2.0, random_state=0)
        >>> X = teacher.sample(200, random_state=1)
        >>> print(dt.HopfieldRBM(n_hidden=8, random_state=0).fit(X).summary())  # doctest: +ELLIPSIS
        3 patterns, β = 2...: as many of 8 singular values are above a gap
        hidden units: gaussian
        training: ... updates, ended because ...
        pseudo-likelihood: -0... per spin, -0.1... of held-out samples
        """
        check_is_fitted(self)
        n, n_hidden = self.n_patterns_, len(self.components_)
        if n:
            found = "1 pattern" if n == 1 else f"{n} patterns"
            beta = f", β = {self.beta_:.3g}" if isinstance(self._prior(), GaussianPrior) else ""
            first = f"{found}{beta}: as many of {n_hidden} singular values are above a gap"
            if self._run.patterns is not None:
                first = f"{found}{beta}: as many directions of the data are above the noise edge"
        else:
            first = f"no pattern: there is no gap between the {n_hidden} singular values"
        reason = how_it_ended(self._run)
        ended = reason and f", ended because {reason}"
        lines = [
            first,
            f"hidden units: {self.hidden_}",
            f"training: {self.n_updates_} updates{ended}",
        ]
        curve = self.history_
        if self._run.best is not None and not self.components_.any():
            lines.append("weights are zero: no state predicts held-out samples better")
        elif len(curve.update):  # partial_fit does not look
            at = max(int(np.searchsorted(curve.update, self.best_update_, side="right")) - 1, 0)
            held_out = curve.validation[at]
            text = "" if np.isnan(held_out) else f", {held_out:.3f} of held-out samples"
            lines.append(f"pseudo-likelihood: {curve.pseudo_likelihood[at]:.3f} per spin{text}")
        return "\n".join(lines)

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the training run to an ``.npz`` file; :func:`dualtap.save` calls this.

        Parameters
        ----------
        path : str or Path
        force : bool
            Overwrite an existing file.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        write_run(Path(path), self._run, self._stored_parameters(), names, force=force)

    def _stored_parameters(self) -> dict[str, Any]:
        return stored_parameters(self) | {"hidden": prior_in_files(self.hidden)}

    @classmethod
    def read(cls, path: str | Path, *, hidden: Prior | None = None) -> Self:
        """Read what :meth:`write` or ``fit(checkpoint=...)`` wrote; :func:`dualtap.load` does too.

        Parameters
        ----------
        path : str or Path
        hidden : Prior, optional
            The prior of the hidden units, if it is not one of this package: files hold no code.

        Returns
        -------
        HopfieldRBM
        """
        run, parameters, names = read_run(Path(path))
        stored = parameters.pop("hidden", "gaussian")
        try:
            prior = prior_from_file(stored) if hidden is None else hidden
            rbm = cls(**parameters, hidden=prior)
            rbm._validate_params()
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is incomplete or damaged: {error}") from None
        rbm._keep(run, finished=True)
        rbm.n_features_in_ = run.state.weights.shape[1]
        if names is not None:
            rbm.feature_names_in_ = names.astype(object)
        return rbm

    def model(self) -> RBM:
        """Return the :class:`dualtap.rbm.model.RBM` that was learned."""
        check_is_fitted(self)
        state = self._kept()
        return RBM(state.weights, state.fields, self._prior())

    def _prior(self) -> Prior:
        return as_prior(self._run.prior or "gaussian" if self.hidden == "auto" else self.hidden)

    def _kept(self) -> Training:
        """Return the present state while training goes on, the best one after it."""
        best = self._run.best
        return best.state if self._finished and best is not None else self._run.on_host().state

    @property
    def hidden_(self) -> str:
        """Name of the prior of the hidden units."""
        return prior_name(self._prior())

    @property
    def components_(self) -> NDArray[np.float32]:
        """The weights W."""
        check_is_fitted(self)
        return self._kept().weights

    @property
    def fields_(self) -> NDArray[np.float32]:
        """Visible fields b."""
        check_is_fitted(self)
        return self._kept().fields

    @property
    def history_(self) -> LearningCurve:
        """What was seen every ``look_every`` updates."""
        check_is_fitted(self)
        return self._run.curve

    @property
    def n_updates_(self) -> int:
        """Updates made."""
        check_is_fitted(self)
        return self._run.update

    @property
    def best_update_(self) -> int:
        """Updates that led to what is kept."""
        check_is_fitted(self)
        return self._run.update if self._run.best is None else self._run.best.update

    @property
    def stop_reason_(self) -> str:
        """Why training stopped; empty while it goes on."""
        check_is_fitted(self)
        return self._run.stop_reason

    @property
    def learning_rate_(self) -> float:
        """The factor of the gradient in use."""
        check_is_fitted(self)
        return self._run.learning_rate

    @property
    def singular_values_(self) -> NDArray[np.float64]:
        """Singular values of the weights, in descending order."""
        return self._patterns().singular_values

    @property
    def n_patterns_(self) -> int:
        """Number of patterns read off the weights."""
        return len(self._patterns().patterns)

    @property
    def patterns_(self) -> NDArray[np.int8]:
        """Patterns read off the weights."""
        return self._patterns().patterns

    @property
    def beta_(self) -> float:
        """Inverse temperature, given or read off the weights."""
        found = self._patterns()
        if not isinstance(self._prior(), GaussianPrior):
            raise AttributeError(
                "beta_ is defined for Gaussian hidden units only: others do not leave a model of "
                "pairs"
            )
        return found.beta if self.beta is None else float(self.beta)

    def _patterns(self) -> Patterns:
        """Return what the weights tell of patterns; found once, when first asked for."""
        check_is_fitted(self)
        if self._found is None:
            rng = np.random.default_rng([self._run.seed, 1])
            self._found = patterns_from_weights(
                self.components_, FIRST_SINGULAR_VALUE, rng, self._run.patterns
            )
        return self._found

    def _keep(self, run: Run, *, finished: bool = False) -> None:
        self._run = run
        self._finished = finished
        self._found = None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_run")

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # hidden means are float32, whatever X is
        return tags
