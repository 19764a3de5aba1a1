"""The input of a report, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dualtap._validation import checked_weights, image_shape
from dualtap.fitted.learned import LearnedPatterns
from dualtap.published import DualTAP
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import HopfieldPatterns
from dualtap.resampling import Stability
from dualtap.spins import Spins, as_spins

Model = HopfieldPatterns | DualTAP | HopfieldRBM


@dataclass(frozen=True)
class Material:
    """A model and what is known beside it.

    Attributes
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
    spins : Spins or None
        With the weights of the samples, if they have any.
    names : tuple of str or None
        One per spin.
    sample_names : tuple of str or None
    labels : tuple of str or None
        One per sample; empty where it is unknown.
    truth : array of shape (n_true, n_spins) or None
    shape : (rows, columns) or None
        How the spins form an image.
    command : str or None
    stability : Stability or None
        Of refits.
    """

    model: Model
    spins: Spins | None
    names: tuple[str, ...] | None
    sample_names: tuple[str, ...] | None
    labels: tuple[str, ...] | None
    truth: NDArray[Any] | None
    shape: tuple[int, int] | None
    command: str | None
    stability: Stability | None = None

    @property
    def n_spins(self) -> int:
        """Number of spins N."""
        return int(self.model.n_features_in_)

    @property
    def magnetizations(self) -> NDArray[Any]:
        """Posterior means of the bits; those of an RBM are its signs, without a confidence."""
        if isinstance(self.model, LearnedPatterns):
            return self.model.magnetizations_
        return self.model.patterns_.astype(np.float32)

    @property
    def has_confidence(self) -> bool:
        """Whether the model has a confidence for each bit."""
        return isinstance(self.model, LearnedPatterns)


def checked(
    model: Model,
    spins: Any = None,
    names: Sequence[object] | None = None,
    sample_names: Sequence[object] | None = None,
    labels: Sequence[object] | None = None,
    teacher: Any = None,
    shape: tuple[int, int] | None = None,
    command: str | None = None,
    stability: Stability | None = None,
    sample_weight: Any = None,
) -> Material:
    """Return the input of a report; raise if parts of it do not match.

    Parameters
    ----------
    model, spins, names, sample_names, labels, teacher, shape, command, stability, sample_weight
        As in :func:`dualtap.report.write_report`.

    Examples
    --------
    >>> import numpy as np
    >>> import dualtap as dt
    >>> from dualtap.report.material import checked
    >>> model = dt.HopfieldPatterns(n_patterns=1, random_state=0).fit(np.eye(6))
    >>> checked(model, shape=(2, 4))
    Traceback (most recent call last):
    ...
    ValueError: shape (2, 4) is not that of a picture of 6 spins: give height and width ...
    """
    if not isinstance(model, (LearnedPatterns, HopfieldRBM)):
        raise TypeError(
            f"a report needs HopfieldPatterns, DualTAP or HopfieldRBM, got {type(model).__name__}"
        )
    check_is_fitted(model)
    n_spins = int(model.n_features_in_)
    data = None if spins is None else as_spins(spins)
    if data is not None and data.n_spins != n_spins:
        raise ValueError(f"the samples have {data.n_spins} spins, but the model has {n_spins}")
    beside = {"sample names": sample_names, "labels": labels, "weights": sample_weight}
    for what, values in beside.items():
        if values is not None and data is None:
            raise ValueError(f"{what} were given without samples: pass spins as well")
    if data is not None and sample_weight is not None:
        data = data.weighted(checked_weights(sample_weight, data.n_samples))
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    n_samples = 0 if data is None else data.n_samples
    return Material(
        model,
        data,
        _texts("spin names", names, n_spins, "spins"),
        _texts("sample names", sample_names, n_samples, "samples"),
        _texts("labels", labels, n_samples, "samples"),
        _truth(teacher, n_spins),
        None if shape is None else image_shape(shape, n_spins),
        command,
        _fitting(stability, model),
    )


def _fitting(stability: Stability | None, model: Model) -> Stability | None:
    """Return the stability of a model, if it is that of this one."""
    if stability is not None and not np.array_equal(stability.entries, model.patterns_):
        raise ValueError("stability belongs to another model: its patterns differ")
    return stability


def _texts(what: str, values: Sequence[object] | None, n: int, of: str) -> tuple[str, ...] | None:
    """Return values as text."""
    if values is None:
        return None
    if len(values) != n:
        raise ValueError(f"there are {len(values)} {what}, but {n} {of}")
    return tuple(map(_text, values.tolist() if hasattr(values, "tolist") else values))


def _text(value: object) -> str:
    """Return a value as text: empty where there is none, 3 for 3.0, which a file made of 3."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.15g}"
    return str(value)


def _truth(teacher: Any, n_spins: int) -> NDArray[Any] | None:
    if teacher is None:
        return None
    truth = np.asarray(getattr(teacher, "patterns", teacher))
    if truth.ndim != 2 or not len(truth) or truth.shape[1] != n_spins:
        raise ValueError(
            f"the true patterns have shape {truth.shape}; expected (n_patterns, {n_spins})"
        )
    return truth
