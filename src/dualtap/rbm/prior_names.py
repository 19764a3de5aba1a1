"""Priors by name: what users and files call them."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any, cast

from dualtap.rbm.priors import PRIORS, Prior


def as_prior(hidden: str | Prior) -> Prior:
    """Return the prior of that name, or the object itself if it has the methods of one.

    Examples
    --------
    >>> from dualtap.rbm.prior_names import as_prior
    >>> as_prior("binary")
    BinaryPrior()
    """
    if isinstance(hidden, str):
        if hidden not in PRIORS:
            raise ValueError(
                f"unknown hidden prior {hidden!r}: choose from {', '.join(map(repr, PRIORS))}, or "
                "give an object with log_normalizer, mean and sample"
            )
        return PRIORS[hidden]
    lacking = [
        name
        for name in ("log_normalizer", "mean", "sample")
        if not callable(getattr(hidden, name, None))
    ]
    if lacking:
        raise TypeError(
            f"hidden={hidden!r} is no prior of hidden units: it has no method {lacking[0]}; see "
            "dualtap.rbm.Prior"
        )
    return hidden


def prior_name(prior: Prior) -> str:
    """Return what to call a prior: its name, or that of its class.

    Examples
    --------
    >>> from dualtap.rbm.prior_names import prior_name
    >>> from dualtap.rbm.priors import ReluPrior
    >>> prior_name(ReluPrior())
    'relu'
    """
    return str(getattr(prior, "name", type(prior).__name__))


def prior_in_files(hidden: str | Prior) -> str | dict[str, Any]:
    """Return what a file says of a prior: its name, and its parameters if it has any.

    Examples
    --------
    >>> from dualtap.rbm.prior_names import prior_in_files
    >>> from dualtap.rbm.priors import SpikeSlabPrior
    >>> prior_in_files(SpikeSlabPrior(0.2))
    {'prior': 'spike_slab', 'share': 0.2}
    """
    if isinstance(hidden, str):
        return hidden
    parameters: dict[str, Any] = asdict(cast(Any, hidden)) if is_dataclass(hidden) else {}
    return {"prior": prior_name(hidden), **parameters}


def prior_from_file(stored: str | dict[str, Any]) -> str | Prior:
    """Return the prior that a file names; raise for one that is not of this package.

    Examples
    --------
    >>> from dualtap.rbm.prior_names import prior_from_file
    >>> prior_from_file({"prior": "spike_slab", "share": 0.2})
    SpikeSlabPrior(share=0.2)
    """
    if isinstance(stored, str):
        return stored
    if not isinstance(stored, dict) or not isinstance(stored.get("prior"), str):
        raise ValueError(f"{str(stored)[:40]!r} is no prior of hidden units")
    name, parameters = stored["prior"], {k: v for k, v in stored.items() if k != "prior"}
    if name not in PRIORS:
        raise ValueError(
            f"the hidden units have a prior of their own, {name}: read the file with "
            "HopfieldRBM.read(path, hidden=...), the prior that it was trained with"
        )
    return type(PRIORS[name])(**parameters)
