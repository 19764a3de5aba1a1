"""
Handwritten digits
==================

1797 digits of 8×8 pixels, each +1 or -1. Do the patterns of a Hopfield model look like digits, do
they find the ten classes, and how well do they foretell a pixel from the others?

Pixels have means of their own: the border is empty, the middle mostly full. And digits are no
samples of a Hopfield model. So this is a test of what patterns are worth where the theory behind
them does not hold.
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import (
    Result,
    as_table,
    draw_pictures,
    draw_results,
    others,
    ours,
    split,
    towards_samples,
)
from sklearn.cluster import KMeans

import dualtap as dt
from dualtap.datasets import load_digits

digits = load_digits()
print(digits.description)
data = split(digits.X, digits.y, n_train=1300, n_test=497)

# %%
# Patterns
# --------
# Twenty are asked for. Told nothing, ``DualTAP`` is undecided on these data, and how many it finds
# depends on which digits it sees: do not trust a number of patterns where it says that samples mix
# many of them.

model = dt.DualTAP(n_patterns=20, random_state=0).fit(data.X)
print(model.summary())

# %%
# ``predict`` names the pattern of greatest overlap. Here a sample overlaps with many, and the
# greatest says little about the class; all of them *together* say more. So k-means groups the
# samples by what ``transform`` returns.
#
# The weights of a restricted Boltzmann machine are not bound to be ±1. With ±1 hidden units, and
# fields for the means of the pixels, they suit pictures better than patterns do.

rbm = dt.HopfieldRBM(20, hidden="binary", fields=True, random_state=0).fit(data.X)

# %%
# Compared
# --------
# All see the same 1300 digits and are judged on the others. k-means is read as a mixture: within a
# cluster, pixels are independent.

results = [
    Result("DualTAP, predict", data.agreement(model.predict(data.X_test)), np.nan),
    ours("DualTAP", model, data),
    ours("HopfieldRBM", rbm, data),
    *others(data, n_hidden=20),
]
print(as_table(results))

# %%
# Many patterns are digits, sharper than the centres of k-means; others are what several digits have
# in common. White pixels are those whose sign the data leave open. To group digits, k-means is
# better and simpler. To foretell pixels, the RBM does best here, and patterns do least of those
# that know anything.

figure = plt.figure(figsize=(8, 7.5), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.5, 1])
axes = above.subplots(4, 1)
first = [np.flatnonzero(digits.y == digit)[0] for digit in range(10)]
weights = rbm.components_ / np.abs(rbm.components_).max(axis=1, keepdims=True)
centres = KMeans(10, n_init=10, random_state=0).fit(data.X.astype(float)).cluster_centers_
draw_pictures(axes[0], digits.X[first], digits.shape, "samples")
draw_pictures(axes[1], towards_samples(model, data.X), digits.shape, "patterns, ten of twenty")
draw_pictures(axes[2], weights, digits.shape, "weights of HopfieldRBM, ten of twenty")
draw_pictures(axes[3], centres, digits.shape, "centres of k-means")
draw_results(below, results)
plt.show()
