"""
Handwritten digits
==================

1797 digits of 8×8 pixels, each +1 or -1. Pixels have means of their own: the border is empty, the
middle mostly full. And digits are no samples of a Hopfield model. So this is a test of what
patterns are worth where the theory behind them does not hold: what do they look like, how well do
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
# one that minimises the description length of data and model. Every pattern has a strength of its
# own, and pixels that have nothing to do with it are 0.

model = dt.HopfieldPatterns(random_state=0).fit(data.X)
print(model.summary())

# %%
# Patterns are not one prototype per class. Each is a way to deviate from the mean digit, to one
# side or the other, and deviations add up: a digit mixes several of them. The first row of the
# figure shows up to ten. White pixels take no part, or have a sign that the data leave open. The
# second row puts one digit together that the fit has not seen: the digit, the mean, and the mean
# with the 1, 2, 4, 8 and all patterns that it leans on most. Every pixel is predicted from the 63
# others; its own value is not used.

three = data.X_test[np.flatnonzero(data.y_test == 3)[1]]
steps = put_together(model, data.X, three, [0, 1, 2, 4, 8, model.n_patterns_])

# %%
# Groups
# ------
# Where samples mix patterns, the nearest pattern says little about the class. All overlaps together
# say more, so k-means groups the samples by what ``transform`` returns.

overlaps = model.transform(data.X), model.transform(data.X_test)
nearest = model.assign(data.X_test)
state = 2 * nearest.label + (nearest.sign > 0)

# %%
# Compared
# --------
# All see the same 1300 digits and are judged on the others. k-means and the mixture are given the
# number of classes, ten; RBMs have 20 hidden units. ``HopfieldRBM``, of this package too, has
# weights that are not bound to be ±1. k-means is read as a mixture: within a cluster, pixels are
# independent.

rbm = dt.HopfieldRBM(20, hidden="binary", fields=True, random_state=0).fit(data.X)
results = [
    Result("HopfieldPatterns, nearest pattern", data.agreement(state), np.nan),
    ours("HopfieldPatterns", model, data),
    ours("HopfieldRBM", rbm, data),
    *others(data, 20, (0.05, 0.1)),
]
print(as_table(results))

# %%
# A pattern says of every pixel only whether it takes part and on which side; an RBM has a real
# number in its place. How the two compare depends on the number of samples and of pixels:
# ``python -m benchmarks real`` measures it on ten data sets, over several splits.
#
# To find the classes, k-means on the pixels is simpler. Digits are ten clusters, roughly: that is
# what k-means and a mixture look for, and they are given the number.

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
