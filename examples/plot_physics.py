"""
Three phases of one teacher
===========================

A Hopfield model with six hidden patterns has three phases. At low temperature each sample is close
to one pattern; at a higher one, to mixtures of several; at a high temperature, samples have small
overlaps with all patterns and do not form clusters. How many samples are needed to find the
patterns in each phase, and what is the theoretical limit?
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import fit_rbm
from scipy.stats import binom
from sklearn.cluster import KMeans

import dualtap as dt
from dualtap.theory import paramagnetic_limit, retrieval_state

N, P = 300, 6
PHASES = {
    "retrieval, β = 2": (2.0, [12, 24, 48]),
    "mixed, β = 1.2": (1.2, [150, 300, 600]),
    "paramagnet, β = 0.8": (0.8, [150, 300, 600]),
}

# %%
# The limits
# ----------
# In the retrieval phase, a sample has an overlap m with its pattern that replica theory predicts.
# With ten samples per pattern, the majority of ten samples determines each bit, and it is correct
# as often as for ten independent spins of mean m; a student that also uses the couplings may be
# slightly better. In the paramagnetic phase the optimum is known for a single pattern and many
# spins. For mixtures no limit is known.


def limit(beta, n_samples):
    """Return the mean overlap of the best signs with the truth, NaN where it is not known."""
    if beta < 1:
        return paramagnetic_limit(beta, n_samples / N).sign
    if beta < 1.5:
        return np.nan
    n, m = n_samples // P, retrieval_state(1 / beta, P / N).magnetization
    right = np.arange(n + 1)
    return float(binom.pmf(right, n, (1 + m) / 2) @ np.sign(2 * right - n))


# %%
# The students
# ------------
# ``HopfieldPatterns`` has its default parameters; k-means and ``BernoulliRBM`` are given the number
# of patterns, six. Each true pattern is compared with the nearest one found, up to the sign.


def overlap(found, teacher):
    """Return the mean over true patterns of the greatest overlap with a found one."""
    return np.abs(dt.metrics.overlaps(found, teacher.patterns)).max(axis=0, initial=0).mean()


def found_by(method, X):
    """Return the ±1 patterns that a method finds."""
    if method == "HopfieldPatterns, blind":
        return dt.HopfieldPatterns(random_state=0).fit(X).patterns_
    if method == "k-means, given P":
        centres = KMeans(P, n_init=3, random_state=0).fit(X.astype(float)).cluster_centers_
    else:
        centres = fit_rbm(X, P).components_
    return np.where(centres < 0, -1, 1)


STYLES = {
    "HopfieldPatterns, blind": "o-C3",
    "k-means, given P": "s-C0",
    "BernoulliRBM, given P": "^-C2",
}

# %%
# In the retrieval phase samples cluster around the patterns, so that any clustering method finds
# them. In the other two phases there are no such clusters: the signs of the cluster centres are
# mixtures of patterns, while the patterns themselves can be recovered from enough samples. The RBM
# needs more samples or longer training, and its weights determine the patterns only up to a
# rotation.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (phase, (beta, sizes)) in zip(axes, PHASES.items(), strict=True):
    teacher = dt.HopfieldModel.random(N, P, beta, random_state=0)
    X = teacher.sample(sizes[-1], random_state=1)
    for method, style in STYLES.items():
        values = [overlap(found_by(method, X[:size]), teacher) for size in sizes]
        print(f"{phase}, {method}:", *(f"{value:.2f}" for value in values))
        ax.plot(sizes, values, style, ms=5, label=method)
    limits = [limit(beta, size) for size in sizes]
    ax.plot(sizes, limits, "k--", lw=1, label="limit")
    ax.axhline(np.sqrt(2 * np.log(P) / N), color="0.6", lw=0.8, ls=":", label="chance")
    ax.set_xscale("log")
    ax.set_xticks(sizes, sizes)
    ax.minorticks_off()
    ax.set_title(phase, loc="left", fontsize=10)
    ax.set_xlabel("samples")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("overlap with the hidden patterns")
axes[0].set_ylim(0, 1.03)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
plt.show()
