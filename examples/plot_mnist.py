"""
MNIST
=====

Digits again, now 28×28 pixels: twelve times as many spins, and fewer samples than spins. Most
pixels are nearly always empty. How well do patterns predict a pixel from the others, and how are
they related to the classes?
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import (
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

import dualtap as dt
from dualtap.datasets import load_mnist

mnist = load_mnist()
print(mnist.description)
data = split(mnist.X, mnist.y, n_train=200, n_test=200)

# %%
# Patterns
# --------
# With default parameters. Handwriting is not made of a few patterns; their number is the one that
# minimises the description length of data and model. More samples support more of them.

model = dt.HopfieldPatterns(random_state=0).fit(data.X)
print(model.summary())

# %%
# How a digit is composed
# -----------------------
# Three held-out digits: the digit, the mean of all, and the mean with the 1, 2, 4, 8, 16 and all
# patterns with which the digit overlaps most. Every pixel is predicted from all the others.

shown = [np.flatnonzero(data.y_test == digit)[0] for digit in (0, 3, 7)]
counts = [0, 1, 2, 4, 8, 16, model.n_patterns_]
rows = [
    [data.X_test[index], *put_together(model, data.X, data.X_test[index], counts)]
    for index in shown
]

# %%
# Compared
# --------
# All are fitted to the same 200 digits and evaluated on 200 others. The RBM has 20 hidden units
# and the better of two learning rates on a fifth of the digits; k-means and the mixture are given
# the number of classes, ten.

results = [ours("HopfieldPatterns", model, data), *others(data, 20, (0.1, 0.2))]
print(as_table(results))

# %%
# The entries of patterns are -1, 0 or +1, which few samples determine; the real weights of an RBM
# need more samples. Deviations from the mean add up, as strokes do; groups cannot represent this.
# Patterns are not suited to find the classes: they describe positions of strokes, slant and
# thickness, which account for most of the differences between images.

figure = plt.figure(figsize=(8, 10), layout="constrained")
above, middle, below = figure.subfigures(3, 1, height_ratios=[1.7, 1.2, 0.9])
axes = above.subplots(4, 1)
draw_patterns(axes[0], model, data.X, mnist.shape)
title = "a digit; the mean; with 1, 2, 4, 8, 16, all patterns"
for ax, row, text in zip(axes[1:], rows, (title, "", ""), strict=True):
    draw_pictures(ax, row, mnist.shape, text)
overlaps = model.transform(data.X), model.transform(data.X_test)
draw_classes(middle, data, overlaps, range(10), "digit")
draw_results(below, results)
plt.show()
