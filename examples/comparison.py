"""What the examples compare with, on equal terms: how well a spin is predicted from the others.

The mean log pseudo-likelihood per spin, log P(s_i | all other spins) over the observed entries, is
exact for every model here, so that values of different models can be compared: -log 2 = -0.693 for
independent fair spins, 0 for certainty. Spins are ±1, with 0 (or NaN) where an entry is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import log_expit, logsumexp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """Groups of samples, in each of which spins are independent: P(s) = Σ_k w_k Π_i p_ki(s_i)."""

    weights: Floats
    """Share of each group, (n_groups,)."""
    up: Floats
    """P(s_i = +1) in each group, (n_groups, n_spins)."""

    def log_joint(self, X: ArrayLike) -> Floats:
        """Return log w_k + Σ_i log p_ki(s_i), of shape (n_samples, n_groups)."""
        S = spins(X)
        up, down = (S > 0).astype(float), (S < 0).astype(float)
        result: Floats = up @ np.log(self.up).T + down @ np.log1p(-self.up).T
        return result + np.log(self.weights)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the likeliest group of each sample."""
        groups: NDArray[np.int64] = np.argmax(self.log_joint(X), axis=1)
        return groups

    def score(self, X: ArrayLike) -> float:
        """Return the mean log pseudo-likelihood per spin."""
        S, joint = spins(X), self.log_joint(X)
        log_up, log_down = np.log(self.up), np.log1p(-self.up)
        total = 0.0
        for s, row in zip(S, joint, strict=True):
            # What the group's weight would be had spin i not been seen, (n_groups, n_spins).
            others = row[:, None] - np.where(s > 0, log_up, np.where(s < 0, log_down, 0))
            odds = logsumexp(others + log_up, axis=0) - logsumexp(others + log_down, axis=0)
            total += float(log_expit(s * odds)[s != 0].sum())
        return total / np.count_nonzero(S)


def mixture_of_groups(X: ArrayLike, labels: ArrayLike) -> Mixture:
    """Return the mixture whose groups are given, each mean smoothed by one fair spin."""
    S, k = spins(X), np.unique(labels, return_inverse=True)[1]
    member = np.eye(k.max() + 1)[k]
    return _mixture(S, member)


def independent_spins(X: ArrayLike) -> Mixture:
    """Return the model in which spins have means and nothing else: the floor of any comparison."""
    return mixture_of_groups(X, np.zeros(len(np.asarray(X)), dtype=int))


def fit_mixture(
    X: ArrayLike, n_groups: int, *, n_starts: int = 5, n_steps: int = 100, random_state: int = 0
) -> Mixture:
    """Return the Bernoulli mixture of greatest likelihood, by EM from random members."""
    S, rng = spins(X), np.random.default_rng(random_state)
    best, best_value = independent_spins(X), -np.inf
    for _ in range(n_starts):
        centres = S[rng.choice(len(S), n_groups, replace=False)]
        mixture = Mixture(np.full(n_groups, 1 / n_groups), 0.5 + 0.25 * centres)
        value = -np.inf
        for _ in range(n_steps):
            joint = mixture.log_joint(S)
            before, value = value, float(logsumexp(joint, axis=1).mean())
            if value - before < 1e-4:
                break
            mixture = _mixture(S, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))
        if value > best_value:
            best, best_value = mixture, value
    return best


def rbm_score(rbm: Any, X: ArrayLike) -> float:
    """Return the mean log pseudo-likelihood per spin of a fitted BernoulliRBM.

    From the free energy F(v) = -b·v - Σ_h softplus(c_h + W_h·v), v in {0, 1}: P(v_i | rest) is
    the logistic function of F(v with bit i flipped) - F(v). The RBM's own ``score_samples`` flips
    one random bit per sample and is not this number. It knows no missing entries: they are 1/2.
    """
    v = unit(X)
    W, b, c = rbm.components_, rbm.intercept_visible_, rbm.intercept_hidden_
    total = 0.0
    for row in v:
        h = (c + W @ row)[:, None]
        turn = 1 - 2 * row
        rise = -b * turn - (np.logaddexp(0, h + W * turn) - np.logaddexp(0, h)).sum(axis=0)
        total += float(log_expit(rise)[turn != 0].sum())
    return total / np.count_nonzero(v != 0.5)


def spins(X: ArrayLike) -> Floats:
    """Return ±1 as floats, 0 for missing."""
    result: Floats = np.nan_to_num(np.asarray(X, dtype=float))
    return result


def unit(X: ArrayLike) -> Floats:
    """Return 0 and 1 for ±1, 1/2 for missing: what BernoulliRBM takes."""
    return (spins(X) + 1) / 2


def _mixture(S: Floats, member: Floats) -> Mixture:
    """Return the mixture that follows from how far each sample belongs to each group."""
    seen = member.T @ (S != 0)
    up = (member.T @ (S > 0) + 0.5) / (seen + 1)
    weights = (member.sum(axis=0) + 0.5) / (len(S) + 0.5 * member.shape[1])
    return Mixture(weights, up)


class Result(NamedTuple):
    """How one method did on the test part."""

    method: str
    ari: float
    """Adjusted Rand index of its groups with the labels: 0 for chance, 1 for the same groups."""
    score: float
    """Held-out log pseudo-likelihood per spin; NaN where none is defined."""


class Split(NamedTuple):
    """What is fitted, what is judged, and the labels, which only the judge sees."""

    X: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[np.int64]
    n_groups: int

    def agreement(self, groups: ArrayLike) -> float:
        """Return the adjusted Rand index of groups of the test samples with their labels."""
        return float(adjusted_rand_score(self.y_test, groups))

    def groups(self, features: ArrayLike, test_features: ArrayLike) -> NDArray[np.int64]:
        """Return groups of the test samples, as many as there are labels, found in features."""
        k_means = KMeans(self.n_groups, n_init=10, random_state=0).fit(spins(features))
        groups: NDArray[np.int64] = k_means.predict(spins(test_features))
        return groups

    def k_means(self, features: ArrayLike, test_features: ArrayLike) -> float:
        """Return the agreement of those groups with the labels."""
        return self.agreement(self.groups(features, test_features))


def split(X: NDArray[Any], y: NDArray[np.int64], n_train: int, n_test: int, seed: int = 0) -> Split:
    """Draw two disjoint parts of the samples, labels in the same proportions in both."""
    X, X_test, _, y_test = train_test_split(
        X, y, train_size=n_train, test_size=n_test, random_state=seed, stratify=y
    )
    return Split(X, X_test, y_test, len(np.unique(y)))


def ours(method: str, model: Any, data: Split) -> Result:
    """Judge one of our models by what its ``transform`` says, all numbers of it together."""
    ari = data.k_means(model.transform(data.X), model.transform(data.X_test))
    return Result(f"{method} + k-means", ari, model.score(data.X_test))


def others(data: Split, n_hidden: int, rates: tuple[float, ...] = (0.1,)) -> list[Result]:
    """Judge k-means, a Bernoulli mixture, BernoulliRBM and, as the floor, independent spins."""
    X, X_test = data.X, data.X_test
    k_means = KMeans(data.n_groups, n_init=10, random_state=0).fit(spins(X))
    clusters = mixture_of_groups(X, k_means.labels_)
    mixture = fit_mixture(X, data.n_groups)
    rbm = fit_rbm(X, n_hidden, rates)
    hidden = [rbm.transform(unit(part)) for part in (X, X_test)]
    return [
        Result("k-means", data.agreement(k_means.predict(spins(X_test))), clusters.score(X_test)),
        Result("Bernoulli mixture", data.agreement(mixture.predict(X_test)), mixture.score(X_test)),
        Result("BernoulliRBM + k-means", data.k_means(*hidden), rbm_score(rbm, X_test)),
        Result("independent spins", np.nan, independent_spins(X).score(X_test)),
    ]


def fit_rbm(
    X: ArrayLike, n_hidden: int, rates: tuple[float, ...] = (0.1,), n_epochs: int = 100
) -> Any:
    """Fit scikit-learn's BernoulliRBM; of several rates, the best on a fifth of X is taken.

    Its user would have to try several as well: no rate suits all data.
    """
    S = spins(X)

    def fitted(rows: Floats, rate: float) -> Any:
        rbm = BernoulliRBM(
            n_hidden, learning_rate=rate, n_iter=n_epochs, batch_size=20, random_state=0
        )
        return rbm.fit(unit(rows))

    if len(rates) == 1:
        return fitted(S, rates[0])
    inner = len(S) * 4 // 5
    return fitted(S, max(rates, key=lambda rate: rbm_score(fitted(S[:inner], rate), S[inner:])))


def towards_samples(model: Any, X: ArrayLike) -> Floats:
    """Return magnetizations with the sign, free otherwise, that the samples furthest out have."""
    o = model.transform(X)
    o -= o.mean(axis=0)
    sign = np.where((o * np.abs(o)).sum(axis=0) < 0, -1, 1)
    result: Floats = sign[:, None] * model.magnetizations_
    return result


def put_together(model: Any, X: ArrayLike, sample: ArrayLike, counts: list[int]) -> Floats:
    """Return the means of a sample's spins, each given all others, as patterns are added.

    The field of a spin is b_i + Σ_μ β_μ ζ_i^μ ζ^μ·s / N, its own share left out. Its mean over X
    makes the mean sample; how far the sample deviates from it, times ζ^μ, is what a pattern adds.
    Those it leans on most come first.
    """
    Z, mean = model.patterns_.astype(float), spins(X).mean(axis=0)
    N, turn = len(mean), spins(sample) - mean
    W = model.strengths_[:, None] * Z / N
    felt = model.fields_ + (Z @ mean) @ W - (W * Z).sum(axis=0) * mean
    order = np.argsort(-np.abs(Z @ turn), kind="stable")
    added = W * ((Z @ turn)[:, None] - Z * turn)
    return np.array([np.tanh(felt + added[order[:count]].sum(axis=0)) for count in counts])


def as_table(results: list[Result]) -> str:
    """Return results as lines of text."""
    lines = [f"{'':32} {'ARI':>6} {'score':>8}"]
    for method, ari, score in results:
        lines.append(
            f"{method:32} {'' if np.isnan(ari) else f'{ari:.2f}':>6} "
            f"{'' if np.isnan(score) else f'{score:.3f}':>8}"
        )
    return "\n".join(lines)


def draw_pictures(ax: Any, pictures: ArrayLike, shape: tuple[int, int], title: str) -> None:
    """Draw up to ten pictures of values in [-1, 1] side by side, +1 dark."""
    values = np.asarray(pictures, dtype=float)[:10]
    tiles = [np.pad(value.reshape(shape), 1, constant_values=np.nan) for value in values]
    ax.imshow(np.hstack(tiles), cmap="RdBu_r", vmin=-1, vmax=1)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_axis_off()


def draw_patterns(ax: Any, model: Any, X: ArrayLike, shape: tuple[int, int]) -> None:
    """Draw up to ten patterns, with the signs that the samples furthest out have."""
    n = model.n_patterns_
    draw_pictures(ax, towards_samples(model, X), shape, f"patterns, {min(10, n)} of {n}")


def draw_classes(figure: Any, data: Split, overlaps: Any, names: Any, label: str) -> None:
    """Draw how the test samples of each class fall into groups, by overlaps and by the spins."""
    left, right = figure.subplots(1, 2)
    draw_groups(left, data.y_test, data.groups(*overlaps), names, "k-means on overlaps")
    draw_groups(right, data.y_test, data.groups(data.X, data.X_test), names, "k-means on pixels")
    left.set_ylabel(label, fontsize=9)


def draw_groups(ax: Any, labels: ArrayLike, groups: ArrayLike, names: Any, title: str) -> None:
    """Draw how the samples of each label fall into groups, groups next to their labels."""
    table = contingency_matrix(labels, groups)
    rows, columns = linear_sum_assignment(-table)
    order = [*columns[np.argsort(rows)], *np.setdiff1d(np.arange(table.shape[1]), columns)]
    ax.imshow(table[:, order] / table.sum(axis=1, keepdims=True), cmap="Reds", vmin=0, vmax=1)
    ax.set_yticks(range(len(names)), names, fontsize=8)
    ax.set_xticks([])
    ax.set_xlabel("group", fontsize=9)
    ax.set_title(title, loc="left", fontsize=10)


def draw_results(figure: Any, results: list[Result]) -> None:
    """Draw both figures of every method as bars, ours in colour; the last method is the floor."""
    methods = [result.method for result in results]
    colours = ["tab:red" if "Hopfield" in m else "0.7" for m in methods]
    floor = results[-1].score
    left, right = figure.subplots(1, 2, sharey=True)
    for ax, lengths, texts, title in (
        (
            left,
            [result.ari for result in results],
            [f"{result.ari:.2f}" for result in results],
            "agreement with the labels (ARI)",
        ),
        (
            right,
            [result.score - floor for result in results],
            [f"{result.score:.3f}" for result in results],
            "held-out log pseudo-likelihood per spin",
        ),
    ):
        bars = ax.barh(methods, np.nan_to_num(lengths), color=colours)
        texts = [text if text != "nan" else "" for text in texts]
        ax.bar_label(bars, texts, padding=3, fontsize=9)
        ax.set_title(title, loc="left", fontsize=10)
        low, high = min(0.0, np.nanmin(lengths)), np.nanmax(lengths)
        ax.set_xlim(low - (0.3 * (high - low) if low < 0 else 0), high + 0.25 * (high - low))
        ax.axvline(0, color="k", lw=0.8)
        ax.set_xticks([])
        ax.tick_params(left=False)
        ax.spines[:].set_visible(False)
    left.invert_yaxis()
