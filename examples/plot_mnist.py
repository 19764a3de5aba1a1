"""
MNIST
=====

Digits again, now 28×28 pixels and more of the same: twelve times as many spins, most of them nearly
always empty. This is the hardest of the examples, and the one where patterns do least.
"""

import matplotlib.pyplot as plt
from comparison import (
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
from dualtap.datasets import load_mnist

mnist = load_mnist()
print(mnist.description)
data = split(mnist.X, mnist.y, n_train=800, n_test=200)

# %%
# Patterns
# --------
# The number of patterns is given. Without it ``DualTAP`` sees hundreds of directions that are no
# noise, takes each for a pattern, and needs minutes: handwriting is not made of a few patterns.

model = dt.DualTAP(n_patterns=20, random_state=0).fit(data.X)
print(model.summary())

# %%
# Compared
# --------
# All see the same 800 digits and are judged on 200 others.

results = [ours("DualTAP", model, data), *others(data, n_hidden=20)]
print(as_table(results))

# %%
# A mixture foretells pixels better and finds the classes better. Patterns look like digits written
# over each other: each is shared by many samples, and a sample is near to none.

figure = plt.figure(figsize=(8, 6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.6, 1])
axes = above.subplots(3, 1)
centres = KMeans(10, n_init=3, random_state=0).fit(data.X.astype(float)).cluster_centers_
draw_pictures(axes[0], mnist.X[::500], mnist.shape, "samples")
draw_pictures(axes[1], towards_samples(model, data.X), mnist.shape, "patterns, ten of twenty")
draw_pictures(axes[2], centres, mnist.shape, "centres of k-means")
draw_results(below, results)
plt.show()
