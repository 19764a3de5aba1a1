"""Logistic PCA: the number of components by its own cross-validation; entries of partial rows."""

import numpy as np
from logisticpca import CVLogisticPCA, LogisticPCA
from protocol import serve

SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
RIDGE = 1e-2  # of the scores of a row: without it few observed entries give certainty


def prepare(setup, request):
    """Return the choice of a size, or with one the probabilities and scores of the queries."""
    spins = np.load(request["samples"])
    n_up, n_down = (spins > 0).sum(axis=0), (spins < 0).sum(axis=0)
    units = np.where(spins == 0, n_up > n_down, spins > 0).astype(float)
    varies = np.count_nonzero(units.min(axis=0) < units.max(axis=0))

    def choose():
        sizes = [size for size in SIZES if size < min(varies, len(units) // 2)]
        selector = CVLogisticPCA(
            component_grid=sizes, cv=3, score_ridge=RIDGE, random_state=request["seed"]
        )
        selector.fit(units)
        return np.full((1, 1), float(selector.best_n_components_))

    def answer():
        model = LogisticPCA(n_components=request["n_components"], m=4.0).fit(units)
        rows = np.load(request["queries"])
        seen = rows != 0
        partial = np.where(seen, (rows > 0).astype(float), np.nan)
        scores = np.zeros((len(rows), request["n_components"]))  # of rows that say nothing
        some = seen.any(axis=1)
        scores[some] = model.transform_partial(
            partial[some], observed_mask=seen[some], method="bernoulli", ridge=RIDGE
        )
        p = model.inverse_transform(scores)
        return np.hstack([np.clip(p, 1e-4, 1 - 1e-4), scores])

    return choose if "queries" not in request else answer


serve(prepare, {"version": "logisticpca"})
