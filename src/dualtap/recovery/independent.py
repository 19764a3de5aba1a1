"""Independent spins: the first model of every fit, and the one that none may fall behind."""

from __future__ import annotations

import numpy as np

from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State, stated
from dualtap.recovery.objective import fields_cost, noise_gain
from dualtap.recovery.refit import Fit, Parameters, refit


def null(judge: Judge) -> State:
    """Return independent spins, fair or each with its own mean, whichever is shorter."""
    none = np.empty((0, judge.n_spins), np.float32)
    start = np.zeros(judge.n_spins)
    free, fair = (
        stated(judge, refit(judge, none, np.empty(0), start, Parameters(fields=fields)))
        for fields in (True, False)
    )
    saved = _saved_by_common_size(judge, free.fit)
    free = free._replace(objective=free.objective - saved)
    return min(free, fair, key=lambda state: state.objective)


def _saved_by_common_size(judge: Judge, fit: Fit) -> float:
    """Return what a description of the fields around a common size, ±c, saves.

    Without it, spins with means of one size would look like samples of one pattern, all on its
    side, which describes them shortly.
    """
    b, w = fit.b, fit.statistics.variance / judge.weight
    sign = np.where(b < 0, -1.0, 1.0)
    signs = np.log(2)
    if abs(sign.sum()) < judge.n_spins:
        noise = calibration.CHARGED_IF_SEEN * noise_gain(judge.n_samples / judge.n_spins)
        signs = judge.n_spins * min(noise, np.log(2)) + np.log(judge.n_spins)
    number = 0.5 * np.log(judge.n_samples)
    size = float(np.abs(b).mean())
    around = fields_cost(b - sign * size, w) + signs + number
    saved = fields_cost(b, w) - around + _saved_by_shrinking(judge, b, sign * size, w)
    return float(max(0.0, saved))


def _saved_by_shrinking(judge: Judge, b: F64, centre: F64, w: F64) -> float:
    r"""Return what fields shrunk to a common size lose on judged rows, and gain on all others.

    Fields fitted to some of the rows suit the other samples less well, each by a nat for every
    other sample that a judged one stands for, unless they hardly differ from the common size. So
    does a sign whose field is known to :math:`1 / \sqrt w`, by :math:`2 c \sqrt w \phi(\bar b
    \sqrt w)` for fields of size :math:`\bar b` shrunk to :math:`\pm c`.
    """
    apart, uncertain = b - centre, 1 / (w + 1)
    free = float(np.mean(np.square(b) + uncertain))
    v = max(float(np.mean(np.square(apart) - uncertain)), 0.0)  # what differs by more than chance
    true_square = max(float(np.mean(np.square(b) - uncertain)), 0.0)
    optimism = np.abs(centre) * np.sqrt(w * 2 / np.pi) * np.exp(-w * true_square / 2)
    share = v * w / (1 + v * w)
    fitted = float((free * w / (1 + free * w) - share - optimism).sum()) - 1
    lost = 0.5 * float((w * np.square((1 - share) * apart)).sum())
    return max(0.0, (judge.weight - 1) * fitted - judge.weight * lost)


def with_means(judge: Judge, nothing: State) -> State:
    """Return independent spins with their means, whatever describes them most shortly."""
    fit, b = nothing.fit, judge.null_fields()
    L = judge.log_likelihood(fit.Z, fit.g, b)
    if L < fit.L:
        return nothing
    fields = Parameters(tied=False)
    return nothing._replace(fit=fit._replace(b=b, L=L, parameters=fields, spread=np.inf))
