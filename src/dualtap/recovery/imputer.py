"""`PatternImputer`: fills gaps of binary data in a scikit-learn pipeline."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.validation import check_is_fitted

from dualtap._random import RandomState, as_generator
from dualtap._validation import HasMethods, TakesSpins, fit_context, validated_spins
from dualtap.recovery.estimator import HopfieldPatterns


class PatternImputer(TakesSpins, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace missing entries of binary data by their likelier value given the others of the row.

    Parameters
    ----------
    estimator : HopfieldPatterns, DualTAP or HopfieldRBM, optional
        The model to fit, with a method ``impute``; ``HopfieldPatterns()`` by default.
    random_state : int, RandomState, Generator or None
        For the default model, and for rows with several missing entries. What :meth:`transform`
        returns depends on what was fitted only: the same for the same row.

    Attributes
    ----------
    estimator_ : HopfieldPatterns, DualTAP or HopfieldRBM
        The fitted model.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import numpy as np
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=60, n_patterns=2, beta=2.0, random_state=0)
    >>> X = teacher.sample(100, random_state=1)
    >>> hidden = np.random.default_rng(2).random(X.shape) < 0.1
    >>> filled = dt.PatternImputer(random_state=0).fit_transform(np.where(hidden, np.nan, X))
    >>> bool((filled == X)[hidden].mean() > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "impute"]), None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(self, estimator: Any = None, *, random_state: RandomState = None) -> None:
        self.estimator = estimator
        self.random_state = random_state

    @fit_context(skip_nested=False)
    def fit(self, X: Any, y: None = None, sample_weight: Any = None) -> Self:
        """Fit the model to X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            ±1, 0/1 or boolean; NaN or None where a value is missing.
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            Number of samples that each row stands for, for a model that takes them.

        Returns
        -------
        self
        """
        spins = validated_spins(self, X, reset=True)
        seeds = as_generator(self.random_state).integers(2**32, size=2).tolist()
        model = HopfieldPatterns() if self.estimator is None else clone(self.estimator)
        if self.estimator is None:
            model.set_params(random_state=seeds[0])
        given = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = model.fit(spins, **given)
        self._seed = seeds[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return X with every missing entry replaced by its likelier value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples, n_spins)
            In the encoding of X: -1/+1, 0/1 or boolean. Of the type of X if that is an array of
            numbers, int8 otherwise; a DataFrame after ``set_output(transform="pandas")`` or
            ``"polars"``.
        """
        check_is_fitted(self)
        spins = validated_spins(self, X)
        filled: NDArray[np.int8] = self.estimator_.impute(spins, random_state=self._seed)
        numeric = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
        return filled.astype(X.dtype) if numeric else filled

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
