"""Columns of a file and spins of a model, matched by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dualtap.io.collecting import SampleFile
from dualtap.io.models import Model
from dualtap.spins import as_spins
from dualtap.spins.parts import with_columns

_MOST_NAMED = 5


def matched(file: SampleFile, model: Model, source: str | Path) -> SampleFile:
    """Return samples with their columns in the order of the model's spins.

    Parameters
    ----------
    file : SampleFile
    model : HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted.
    source : str or Path
        What the file is called, for messages.

    Returns
    -------
    SampleFile
        With the names of the model. If either has no names, the file as it is.

    Raises
    ------
    ValueError
        If columns are missing or foreign, or if there are no names and the number differs.

    Examples
    --------
    >>> import pandas as pd
    >>> import dualtap as dt
    >>> from dualtap.io import SampleFile, matched
    >>> X = pd.DataFrame([[1, 0, 0], [0, 1, 0], [1, 0, 1]], columns=["tax", "school", "road"])
    >>> model = dt.HopfieldPatterns(1, random_state=0).fit(X)
    >>> file = SampleFile(dt.as_spins([[0, 1, 1]]), names=("road", "tax", "school"))
    >>> matched(file, model, "new.csv").spins.values
    array([[ 1,  1, -1]], dtype=int8)
    """
    names = getattr(model, "feature_names_in_", None)
    if names is not None and file.names is not None:
        return in_order(file, names.tolist(), source)
    if file.spins.n_spins != model.n_features_in_:
        raise ValueError(
            f"{source} has {file.spins.n_spins} columns, and the model {model.n_features_in_} "
            "spins: give the columns that it was fitted to"
        )
    return file


def in_order(
    file: SampleFile, names: Sequence[str], source: str | Path, whose: str | Path = "the model"
) -> SampleFile:
    """Return samples with their columns in the order of these names, all of which they have.

    Messages call the samples ``source``, and what the names belong to ``whose``.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.io import SampleFile
    >>> from dualtap.io.matching import in_order
    >>> file = SampleFile(dt.as_spins([[1, 0]]), names=("tax", "road"))
    >>> in_order(file, ["road", "school"], "new.csv")
    Traceback (most recent call last):
    ...
    ValueError: new.csv does not have the columns of the model: missing 'school'; not in the model
    'tax'
    """
    present = file.names
    if present is None or list(present) == list(names):
        return file
    wanted, counts = set(names), Counter(present)
    missing = [name for name in names if name not in counts]
    foreign = [name for name in present if name not in wanted]
    repeated = sorted(name for name, count in counts.items() if count > 1)
    wrong = {"missing": missing, f"not in {whose}": foreign, "more than once": repeated}
    told = [f"{what} {_some(which)}" for what, which in wrong.items() if which]
    if told:
        raise ValueError(f"{source} does not have the columns of {whose}: {'; '.join(told)}")
    place = {name: k for k, name in enumerate(present)}
    order = np.array([place[name] for name in names])
    return replace(file, spins=with_columns(file.spins, order), names=tuple(names))


def _some(names: Sequence[str]) -> str:
    """Return names for a message, not more than a reader wants."""
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMED])
    return shown + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")


def with_gaps_filled(given: SampleFile, ordered: SampleFile, model: Model, seed: int) -> SampleFile:
    """Return the samples of a file with their gaps filled by a model, columns as they were given.

    Parameters
    ----------
    given : SampleFile
    ordered : SampleFile
        The same, as :func:`matched` returns it.
    model : HopfieldPatterns, DualTAP or HopfieldRBM
    seed : int

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.io import SampleFile
    >>> from dualtap.io.matching import with_gaps_filled
    >>> X = dt.HopfieldModel.random(20, 1, beta=2.0, random_state=0).sample(30, random_state=1)
    >>> model = dt.HopfieldPatterns(1, random_state=0).fit(X)
    >>> file = SampleFile(dt.as_spins([[None, *X[0, 1:]]]))
    >>> bool((with_gaps_filled(file, file, model, 0).spins.values == X[0]).all())
    True
    """
    filled = replace(ordered, spins=as_spins(model.impute(ordered.spins, random_state=seed)))
    return filled if given.names is None else in_order(filled, given.names, "the filled samples")
