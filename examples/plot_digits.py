"""
Handwritten digits
==================

1797 digits of 8×8 pixels, each +1 or -1. Pixels have unequal means: the border is empty, the
middle mostly full. Digits are not samples of a Hopfield model, so this is a test of patterns
where their theory does not hold: what do they look like, how well do
they predict a pixel from the others, and do they find the ten classes?
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import (
    Result,
    as_table,
    draw_classes,
    draw_patterns,
    draw_pictures,
    draw_results,
    others,
    ours,
    put_together,
    split,
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
# With default parameters. Fields explain the means of the pixels, and the number of patterns is the
# one that minimises the description length of data and model. Every pattern has its own strength,
# and pixels that are not in it are 0.

model = dt.HopfieldPatterns(random_state=0).fit(data.X)
print(model.summary())

# %%
# Patterns are not one prototype per class. Each is a way to deviate from the mean digit, to one
# side or the other, and deviations add up: a digit mixes several of them. The first row of the
# figure shows up to ten. White pixels are not in the pattern, or have an uncertain sign. The
# second row shows how a held-out digit is composed: the digit, the mean, and the mean
# with the 1, 2, 4, 8 and all patterns with which it overlaps most. Every pixel is predicted from
# the 63 others; its own value is not used.

three = data.X_test[np.flatnonzero(data.y_test == 3)[1]]
steps = put_together(model, data.X, three, [0, 1, 2, 4, 8, model.n_patterns_])

# %%
# Groups
# ------
# Where samples combine patterns, the nearest pattern is hardly related to the class. All overlaps
# together are more informative, so k-means groups the samples by the output of ``transform``.

overlaps = model.transform(data.X), model.transform(data.X_test)
nearest = model.assign(data.X_test)
state = 2 * nearest.label + (nearest.sign > 0)

# %%
# Compared
# --------
# All are fitted to the same 1300 digits and evaluated on the others. k-means and the mixture are
# given the number of classes, ten; RBMs have 20 hidden units. ``HopfieldRBM``, also in this
# package, has real-valued weights. k-means is interpreted as a mixture: within a cluster, pixels
# are independent.

rbm = dt.HopfieldRBM(20, hidden="binary", fields=True, random_state=0).fit(data.X)
results = [
    Result("HopfieldPatterns, nearest pattern", data.agreement(state), np.nan),
    ours("HopfieldPatterns", model, data),
    ours("HopfieldRBM", rbm, data),
    *others(data, 20, (0.05, 0.1)),
]
print(as_table(results))

# %%
# A pattern has entries -1, 0 and +1, where an RBM has real numbers. How the two compare depends on
# the number of samples and of pixels:
# ``python -m benchmarks real`` measures it on ten data sets, over several splits.
#
# To find the classes, k-means on the pixels is simpler. Digits form roughly ten clusters, as
# k-means and a mixture assume, and these are given the number.

figure = plt.figure(figsize=(8, 9.5), layout="constrained")
above, middle, below = figure.subfigures(3, 1, height_ratios=[1.1, 1.2, 1])
axes = above.subplots(3, 1)
draw_patterns(axes[0], model, data.X, digits.shape)
draw_pictures(
    axes[1], [three, *steps], digits.shape, "a digit; the mean; with 1, 2, 4, 8, all patterns"
)
centres = KMeans(10, n_init=10, random_state=0).fit(data.X.astype(float)).cluster_centers_
draw_pictures(axes[2], centres, digits.shape, "centres of k-means")
draw_classes(middle, data, overlaps, range(10), "digit")
draw_results(below, results)
plt.show()
