"""Changes of a model, each accepted if it makes the description shorter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64, Features
from dualtap.recovery.judge import Judge
from dualtap.recovery.objective import (
    description_length,
    pattern_costs,
    sizes_of,
)
from dualtap.recovery.refit import (
    HOPFIELD,
    Fit,
    Parameters,
    at,
    fields_for,
    information,
    refit,
    times_counted,
)
from dualtap.spins.protocol import F32
from dualtap.spins.weights import weighted


class State(NamedTuple):
    """A fitted model and its description length."""

    fit: Fit
    objective: float
    """Description length of data and model, nats."""
    rho: F64
    """How often the evidence for each pattern is counted."""
    found: F64
    """Nats charged for patterns found in half of the samples; NaN for those that are described."""
    m: F32 | None = None
    """Posterior means of the bits, where the proposer has them."""

    @property
    def K(self) -> F64:  # noqa: N802
        """Inverse information of the strengths."""
        return information(self.fit)


def stated(judge: Judge, fit: Fit, found: F64 | None = None) -> State:
    """Return a fit with its description length.

    Parameters
    ----------
    judge : Judge
    fit : Fit
    found : array of shape (n_patterns,), optional
        Nats charged for patterns that were found in half of the samples, NaN for the others.
    """
    found = np.full(len(fit.Z), np.nan) if found is None else found
    rho = times_counted(fit.Z, fit.g, judge)
    length = description_length(fit, judge, rho, found)
    return State(fit, length, rho, found)


def of_one_strength(judge: Judge, Z: F32) -> State:
    """Return the Hopfield model of those patterns that are worth their cost."""
    return without_idle(judge, with_all(judge, Z))


def with_all(judge: Judge, Z: F32, beta: float = 1.0) -> State:
    """Return the Hopfield model of patterns, whether or not each is worth its cost.

    Parameters
    ----------
    judge : Judge
    Z : array of shape (n_patterns, n_spins)
    beta : float
        Where the strength starts.
    """
    start = np.full(len(Z), beta), np.zeros(judge.n_spins)
    return stated(judge, refit(judge, Z, *start, HOPFIELD))


def without_idle(judge: Judge, state: State) -> State:
    """Return the model without patterns that are not worth their cost."""
    if worthwhile(state, judge)[0].all():
        return state
    return with_patterns(judge, state.fit.Z, state)


def freed(judge: Judge, state: State) -> State:
    """Return the model with strengths and fields of their own, whatever they cost."""
    fit = state.fit
    if fit.parameters == Parameters():
        return state
    free = refit(judge, fit.Z, fit.g, fit.b, Parameters())
    return stated(judge, free, state.found)._replace(objective=state.objective)


def with_patterns(
    judge: Judge, Z: F32, state: State, *, least: int = 0, most: int | None = None
) -> State:
    """Return the model with other patterns, without those that cost more than they gain.

    Patterns that were there keep their strengths to start with.

    Parameters
    ----------
    judge : Judge
    Z : array of shape (n_patterns, n_spins)
    state : State
        Where strengths and fields start.
    least : int
        Patterns to keep whatever they cost.
    most : int, optional
        Patterns to keep at most.
    """
    Z = distinct(Z)
    g, found = _known(Z, state)
    b, now = fields_for(judge, state.fit, Z, g), state
    if not np.array_equal(Z, state.fit.Z):
        now = stated(judge, refit(judge, Z, g, b, state.fit.parameters), found)
    safe = np.zeros(len(Z), dtype=np.bool_)
    while True:
        kept, predicted = worthwhile(now, judge, least, most, safe)
        if kept.all():
            return now
        other = _reduced(judge, now, kept, predicted, (g, b))
        if other.objective < now.objective or (most is not None and len(kept) > most):
            now, g, safe = other, g[kept], safe[kept]
        else:  # to second order is far off where spins are nearly determined
            dropped = np.flatnonzero(~kept)
            strong = np.argsort(-np.abs(now.fit.g[dropped]) * sizes_of(now.fit.Z[dropped]))
            safe[dropped[strong[: -(-len(dropped) // 2)]]] = True


def with_fewer(judge: Judge, state: State, n_patterns: int) -> State:
    """Return the model with only so many patterns, the least useful left out first."""
    while len(state.fit.Z) > n_patterns:
        n = len(state.fit.Z)
        most = max(n_patterns, n - max(1, n // 8))  # not so many that strengths go astray
        state = with_patterns(judge, state.fit.Z, state, least=most, most=most)
    return state


def _reduced(
    judge: Judge, state: State, kept: NDArray[np.bool_], predicted: F64, first: tuple[F64, F64]
) -> State:
    """Return the model without some patterns, from the likeliest of several starts."""
    fit = state.fit
    Z, none = fit.Z[kept], np.zeros(int(kept.sum()))
    starts = [
        (first[0][kept], first[1]),
        (predicted[kept], fields_for(judge, fit, Z, predicted[kept])),
        (fit.g[kept], fields_for(judge, fit, Z, fit.g[kept])),
        (none, judge.null_fields() if fit.parameters.fields else np.zeros(judge.n_spins)),
    ]
    likeliest = starts[0]
    if len(Z):
        likeliest = max(starts, key=lambda start: judge.log_likelihood(Z, *start))
    return stated(judge, refit(judge, Z, *likeliest, fit.parameters), state.found[kept])


def worthwhile(
    state: State,
    judge: Judge,
    least: int = 0,
    most: int | None = None,
    safe: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.bool_], F64]:
    r"""Return which patterns are worth their cost, and the strengths without the others.

    Without pattern μ the log-likelihood falls by :math:`g_\mu^2 / 2 K_{\mu\mu}` and the strengths
    of the others change by :math:`-K_{\cdot\mu} g_\mu / K_{\mu\mu}`, to second order; they are left
    out one by one, the worst first, as long as more than ``least`` remain, until at most ``most``
    do, and never the ``safe`` ones unless they are too many.
    """
    fit, K = state.fit, state.K
    g, alive, sizes = fit.g.copy(), np.ones(len(fit.g), dtype=np.bool_), sizes_of(fit.Z)
    costs = pattern_costs(sizes, state.rho, judge, fit.g > 0)
    costs = np.where(np.isnan(state.found), costs, state.found) + 0.5 * np.log(judge.n_samples)
    while alive.sum() > least:
        own = np.maximum(np.diag(K), 1e-300)
        net = np.where(alive, np.square(g) / (2 * own) - costs, np.inf)
        too_many = most is not None and alive.sum() > most
        if safe is not None and not too_many:
            net = np.where(safe, np.inf, net)
        worst = int(np.argmin(net))
        if net[worst] >= 0 and not too_many:
            break
        alive[worst] = False
        g = g - K[:, worst] * (g[worst] / own[worst])
        K = K - np.outer(K[:, worst], K[worst]) / own[worst]
    return alive, g


def distinct(Z: F32) -> F32:
    """Return patterns without those that are nearly equal to an earlier one, up to sign."""
    if not len(Z):
        return Z
    Z = Z[sizes_of(Z) > 1]
    return Z[unlike(Z)]


def unlike(Z: F32) -> list[int]:
    """Return the vectors that are nearly equal to no earlier one of them, up to sign."""
    size = np.sqrt(sizes_of(Z))
    alike = np.abs(Z @ Z.T) > calibration.SAME * np.outer(size, size)
    kept, new = [], np.ones(len(Z), dtype=np.bool_)
    for k in range(len(Z)):
        if new[k]:
            kept.append(k)
            new &= ~alike[k]
    return kept


def _known(Z: F32, state: State) -> tuple[F64, F64]:
    """Return the strengths that patterns have in a model, and what they are charged there.

    A pattern is known by the one it is most like; one that was found in half of the samples, and
    is not what it was, has to be described.
    """
    fit = state.fit
    g, found = np.zeros(len(Z)), np.full(len(Z), np.nan)
    if len(Z) and len(fit.Z):
        cosine = (Z @ fit.Z.T) / np.sqrt(np.outer(sizes_of(Z), sizes_of(fit.Z)))
        like = np.argmax(cosine, axis=1)
        same = cosine[np.arange(len(Z)), like] > calibration.SAME
        like = like[same]
        as_it_was = (Z[same] == fit.Z[like]).all(axis=1)
        g[same], found[same] = fit.g[like], np.where(as_it_was, state.found[like], np.nan)
    if fit.parameters.tied:
        g[:] = float(fit.g[0]) if len(fit.g) else 1.0
    return g, found


def halved(judge: Judge, state: State) -> State:
    r"""Return the model with pairs of patterns replaced by their halves, where that is shorter.

    Patterns ξ and ξ' of one strength on the same spins have the couplings of :math:`(\xi \pm
    \xi')/2` of twice the strength, which have half as many entries. Patterns without zeros stay so.
    """
    while len(state.fit.Z) > 1:
        Z, size = state.fit.Z, sizes_of(state.fit.Z)
        shared = np.square(Z) @ np.square(Z).T / np.maximum.outer(size, size)
        ratio = np.divide.outer(state.fit.g, state.fit.g)
        alike = (shared > calibration.SAME) & (ratio >= 1) & (ratio < 1 / calibration.SAME)
        alike &= np.minimum.outer(size, size) < judge.n_spins
        for mu, nu in np.argwhere(alike & ~np.eye(len(Z), dtype=np.bool_)):
            halves = np.trunc((Z[mu] + Z[nu]) / 2), np.trunc((Z[mu] - Z[nu]) / 2)
            if min(map(np.count_nonzero, halves)) < 2:
                continue
            rest = np.delete(np.arange(len(Z)), (mu, nu))
            new = np.concatenate([Z[rest], halves]).astype(np.float32)
            g = np.append(state.fit.g[rest], 2 * state.fit.g[[mu, nu]])
            found = np.append(state.found[rest], [np.nan, np.nan])
            same = at(judge, new, g, state.fit.b, state.fit.parameters, state.fit.spread)
            if stated(judge, same, found).objective < state.objective:
                fit = refit(judge, new, g, state.fit.b, state.fit.parameters)
                state = stated(judge, fit, found)
                break
        else:
            break
    return state


def simplest(judge: Judge, state: State) -> State:
    """Return the model with one strength for all patterns or none of the fields, if shorter."""
    for parameters in (
        state.fit.parameters._replace(tied=True),
        state.fit.parameters._replace(fields=False),
        HOPFIELD,
    ):
        if parameters == state.fit.parameters or not _worth_trying(state, parameters, judge):
            continue
        fit = refit(judge, state.fit.Z, state.fit.g, state.fit.b, parameters)
        other = stated(judge, fit, state.found)
        if other.objective < state.objective:
            state = other
    return state


def _worth_trying(state: State, parameters: Parameters, judge: Judge) -> bool:
    """Say whether fewer numbers may do, to second order."""
    fit = state.fit
    if parameters.tied and not fit.parameters.tied:
        if len(fit.g) < 2 or fit.g.min() <= 0:  # β is positive
            return False
        H = np.linalg.inv(state.K)
        common = float((H @ fit.g).sum() / H.sum())
        loss = 0.5 * float((fit.g - common) @ H @ (fit.g - common))
        if loss > len(fit.g) * np.log(judge.n_samples):
            return False
    if not parameters.fields and fit.parameters.fields:
        loss = 0.5 * float((np.square(fit.b) * fit.statistics.variance).sum())
        return bool(loss < len(fit.b) * np.log(judge.n_samples))
    return True


def enlarged(judge: Judge, state: State) -> State:
    """Return the model with strengths of its own for each pattern, or fields, if shorter."""
    fit = state.fit
    wanted = fit.parameters
    if not wanted.fields:
        chi = np.mean(
            np.square(fit.statistics.residual) / np.maximum(fit.statistics.variance, 1e-3)
        )
        if chi > judge.weight * (1 + 3 * np.sqrt(2 / judge.n_spins)):
            wanted = wanted._replace(fields=True)
    if wanted.tied and len(fit.g) > 1:
        gain = 0.5 * float(fit.statistics.slope @ state.K @ fit.statistics.slope)
        if gain > 0.5 * np.log(judge.n_samples) * (len(fit.g) - 1):
            wanted = wanted._replace(tied=False)
    for parameters in {wanted, wanted._replace(tied=fit.parameters.tied)} - {fit.parameters}:
        other = stated(judge, refit(judge, fit.Z, fit.g, fit.b, parameters), state.found)
        if other.objective < state.objective:
            state = other
    return state


class Turning(NamedTuple):
    """Patterns with the entries that every site would have, given the others."""

    Z: F32
    gain: F64
    """What the changes of each site gain, shape (n_spins,)."""

    def first(self, Z: F32, n: int) -> F32:
        """Return patterns with the n sites changed that gain most."""
        sites = np.argsort(-self.gain, kind="stable")[:n]
        turned = Z.copy()
        turned[:, sites] = self.Z[:, sites]
        return turned


def turning(judge: Judge, state: State) -> Turning:
    """Return the patterns after Newton steps of the entries of every site, singly and in pairs.

    An entry that is not 0 costs what its place and its sign do; a pattern without zeros stays so.
    """
    from dualtap._kernels.entries import best_entries

    Z, N = state.fit.Z, judge.n_spins
    sites = of_sites(judge, state.fit)
    n = sizes_of(Z)
    entry = np.log(np.maximum(N - n, 1) / (n + 1)) + np.log(2)
    zeta, A, c = (np.ascontiguousarray(x.T, dtype=np.float64) for x in (Z, sites.A, sites.c))
    gain = np.zeros(N)
    best_entries(zeta, A, c, sites.r, entry, n < N, gain, 2 * len(Z))
    return Turning(np.ascontiguousarray(zeta.T, dtype=np.float32), gain)


class Sites(NamedTuple):
    """The log-likelihood of each spin given the others, to second order in its own entries."""

    A: F64
    """Slopes, shape (n_patterns, n_spins)."""
    c: F64
    """Curvatures, same shape."""
    r: F64
    """Correlations of the overlaps, shape (n_patterns, n_patterns)."""


def of_sites(judge: Judge, fit: Fit) -> Sites:
    r"""Return what the samples say of the entries of every spin, from its own side.

    :math:`A_i^\mu = \sum_a (s_{ai} - \tanh h_{ai})\, x_{ai}^\mu` and :math:`c = \sum_a (1 -
    \tanh^2 h_{ai}) (x_{ai}^\mu)^2`, with :math:`x^\mu` the overlap times g, the spin itself left
    out. What the other spins say of the entry is the same evidence once more.
    """
    A, c = np.zeros(fit.Z.shape), np.zeros(fit.Z.shape)
    C = np.zeros((len(A), len(A)))
    g = fit.g.astype(np.float32)
    own = g / np.float32(judge.n_spins)
    for S, R, W, w in judge.residuals(fit.Z, fit.g, fit.b):
        X = Features(S, fit.Z).F * g
        A += X.T @ R - fit.Z * np.outer(own, (R * S).sum(axis=0))
        c += np.square(X).T @ W - 2 * fit.Z * ((X * own).T @ (W * S))
        C += weighted(X, w).T @ X
    size = np.sqrt(np.maximum(np.diag(C), 1e-300))
    return Sites(judge.weight * A, judge.weight * np.maximum(c, 0), C / np.outer(size, size))
