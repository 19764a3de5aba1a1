"""Model files of earlier schemas, brought to the present one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._schema import LARGEST, Entry, checked_arrays, parsed_fields

_NEEDED = {
    "provenance": Entry("U"),
    "patterns": Entry("i", ("P", "N"), -1, 1),
    "beta": Entry("f", (), 1 / LARGEST, nan=True),  # of a model without patterns
}
_DEFLATION_ONLY = ("beta", "start", "n_students", "n_steps", "damping", "tol", "max_iter")


def upgraded(contents: dict[str, NDArray[Any]], schema: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an old file as those of the present schema.

    Schema 1 knew the published algorithm only, and no fields. Schema 2 kept one β, and named the
    method in the parameter ``scheme`` of a single estimator.

    Parameters
    ----------
    contents : dict of arrays
    schema : int
        1 or 2.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> from dualtap.io.old_models import upgraded
    >>> parameters = {"n_patterns": None, "beta": None, "scheme": "joint", "start": "auto",
    ...               "effort": 1, "random_state": 0, "verbose": False}
    >>> old = {"provenance": np.array(json.dumps({"dualtap": "0.1.0", "parameters": parameters})),
    ...        "patterns": np.ones((2, 4), dtype=np.int8), "beta": np.array(1.5)}
    >>> new = upgraded(old, 2)
    >>> str(new["estimator"]), new["strengths"]
    ('HopfieldPatterns', array([1.5, 1.5]))
    """
    checked_arrays(contents, _NEEDED)
    if schema == 1:
        contents = _from_first(contents)
    stored = parsed_fields(contents["provenance"], parameters=dict)
    parameters = dict(stored["parameters"])
    deflation = parameters.pop("scheme") == "deflation"
    parameters.pop("effort")
    if deflation:
        parameters["start"] = "random" if parameters["start"] == "random" else "spectral"
    else:
        for name in _DEFLATION_ONLY:
            parameters.pop(name, None)
    return contents | {
        "provenance": np.array(json.dumps(stored | {"parameters": parameters})),
        "estimator": np.array("DualTAP" if deflation else "HopfieldPatterns"),
        "strengths": np.full(len(contents["patterns"]), float(contents["beta"])),
        "means": np.zeros(contents["patterns"].shape[1]),
        "objective": np.array(np.nan),
        "median_overlap": np.array(np.nan),
        "trace": np.array("[]"),
    }


def _from_first(contents: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a file of the first schema with what the second holds as well."""
    from dualtap.theory import curie_weiss_magnetization

    stored = parsed_fields(contents["provenance"], parameters=dict)
    stored["parameters"] |= {"scheme": "deflation", "effort": 1}
    n_patterns, n_spins = contents["patterns"].shape
    # The first schema did not keep how near samples come to their patterns; deflation works where
    # each lies in the state of one pattern, whose overlap is that of a ferromagnet.
    overlap = curie_weiss_magnetization(contents["beta"])
    return contents | {
        "provenance": np.array(json.dumps(stored)),
        "fields": np.zeros(n_spins),
        "typical_overlaps": np.full(n_patterns, overlap),
        "reason": np.array(""),
    }
