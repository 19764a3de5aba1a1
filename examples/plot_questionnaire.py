"""
A questionnaire with gaps
=========================

3570 students, 57 questions of the Eysenck Personality Inventory, yes or no or left out. Which
answers go together, and what would someone have answered?

The questionnaire was made to measure two things, extraversion (E) and neuroticism (N), and has a
few questions that show who gives flattering answers (L, the lie scale). A published key says which
answers count for which scale. It is not used in the fits.
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import fit_mixture, fit_rbm, independent_spins, mixture_of_groups, rbm_score, spins
from scipy.special import softmax
from sklearn.cluster import KMeans

import dualtap as dt
from dualtap.datasets import load_questionnaire

answers = load_questionnaire()
print(answers.description)
print(f"{np.isnan(answers.X).mean():.1%} of the answers are missing")
answered = answers.X[np.isnan(answers.X).mean(axis=1) < 0.5]
order = np.random.default_rng(0).permutation(len(answered))
X, X_test = answered[order[:800]], answered[order[800:1400]]

# %%
# Two patterns, two scales
# ------------------------
# The scoring key, as numbers of questions: a minus sign means that "no" counts.

KEY = {
    "E": "1 3 -5 8 10 13 -15 17 -20 22 25 27 -29 -32 -34 -37 39 -41 44 46 49 -51 53 56",
    "N": "2 4 7 9 11 14 16 19 21 23 26 28 31 33 35 38 40 43 45 47 50 52 55 57",
    "L": "6 -12 -18 24 -30 36 -42 -48 -54",
}
scales = {name: np.zeros(57, dtype=int) for name in KEY}
for name, items in KEY.items():
    for item in map(int, items.split()):
        scales[name][abs(item) - 1] = np.sign(item)

two = dt.HopfieldPatterns(n_patterns=2, random_state=0).fit(X)
print(f"{'entries of the pattern':>26} with / against the key of the scale")
for k, pattern in enumerate(two.patterns_):
    product = {name: pattern * scale for name, scale in scales.items()}
    counted = [f"{n} {(p > 0).sum():2} / {(p < 0).sum():2}" for n, p in product.items()]
    print(f"pattern {k}: {np.count_nonzero(pattern):2} questions,  {',  '.join(counted)}")

# %%
# The overlap of a person with a pattern is a score, like the sum over the key, and the two agree
# although the key is not used. Entries of 0 are questions that are not in the pattern.

overlaps = two.transform(X_test)
scores = np.column_stack([spins(X_test) @ scales[name] for name in ("N", "E")])
agreement = np.corrcoef(overlaps.T, scores.T)[:2, 2:]
if abs(agreement[0, 0]) + abs(agreement[1, 1]) < abs(agreement[0, 1]) + abs(agreement[1, 0]):
    overlaps, agreement = overlaps[:, ::-1], agreement[::-1]
turn = np.sign(np.diag(agreement))
print(f"correlation with the scales: N {abs(agreement[0, 0]):.2f}, E {abs(agreement[1, 1]):.2f}")

# %%
# With default parameters, the number of patterns is the one that minimises the description length.
# Questions that nearly repeat one another (parties, worries, sleep) have patterns of their own.

blind = dt.HopfieldPatterns(random_state=0).fit(X)
print(f"{blind.n_patterns_} patterns: {blind.reason_}")

# %%
# Answers that were not given
# ---------------------------
# One answer in ten of held-out people is hidden. ``predict_entries`` returns the
# probability of a yes given their other answers. Groups (k-means, a Bernoulli mixture of eight)
# predict it from the shares of yes in the groups that a person may belong to.

hidden = (np.random.default_rng(1).random(X_test.shape) < 0.1) & ~np.isnan(X_test)
shown = np.where(hidden, np.nan, X_test)
yes = X_test[hidden] > 0


def by_groups(mixture):
    """Return the probability of a yes, from the groups that the answers shown point to."""
    return softmax(mixture.log_joint(shown), axis=1) @ mixture.up


k_means = mixture_of_groups(X, KMeans(8, n_init=10, random_state=0).fit_predict(spins(X)))
mixture = fit_mixture(X, 8)
rbm = fit_rbm(X, n_hidden=8, n_epochs=20)
nothing = independent_spins(X)
rows = {
    "HopfieldPatterns, blind": (blind.predict_entries(shown, random_state=0), blind.score(X_test)),
    "HopfieldPatterns, two": (two.predict_entries(shown, random_state=0), two.score(X_test)),
    "Bernoulli mixture": (by_groups(mixture), mixture.score(X_test)),
    "k-means": (by_groups(k_means), k_means.score(X_test)),
    "BernoulliRBM": (None, rbm_score(rbm, X_test)),
    "independent answers": (by_groups(nothing), nothing.score(X_test)),
}
print(f"{'':24} {'accuracy':>9} {'log-loss':>9} {'score':>8}")
for method, (p, score) in rows.items():
    filled = ["", ""]
    if p is not None:
        right = np.where(yes, p[hidden], 1 - p[hidden])
        filled = [f"{np.mean(right > 0.5):.3f}", f"{-np.log(right).mean():.3f}"]
    print(f"{method:24} {filled[0]:>9} {filled[1]:>9} {score:>8.3f}")

# %%
# The score is the log pseudo-likelihood per observed answer. BernoulliRBM does not support missing
# entries.

figure = plt.figure(figsize=(8, 6.5), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.3, 1])
for k, (ax, scale) in enumerate(
    zip(above.subplots(1, 2), ("neuroticism", "extraversion"), strict=True)
):
    ax.plot(scores[:, k], turn[k] * overlaps[:, k], ".", color="tab:red", alpha=0.15)
    ax.set_xlabel(f"{scale} by the published key")
    ax.set_ylabel("overlap with the pattern")
    ax.set_title(f"correlation {abs(agreement[k, k]):.2f}", loc="left", fontsize=10)
    ax.spines[["top", "right"]].set_visible(False)
floor = rows["independent answers"][1]
bars = below.subplots()
length = [score - floor for _, score in rows.values()]
colours = ["tab:red" if "Hopfield" in method else "0.7" for method in rows]
drawn = bars.barh(list(rows), length, color=colours)
bars.bar_label(drawn, [f"{score:.3f}" for _, score in rows.values()], padding=3, fontsize=9)
bars.set_title("held-out log pseudo-likelihood per answer", loc="left", fontsize=10)
bars.set_xlim(min(0, *length), 1.2 * max(length))
bars.set_xticks([])
bars.tick_params(left=False)
bars.spines[:].set_visible(False)
bars.invert_yaxis()
plt.show()
