"""
Blood cells
===========

700 blood cells and 765 genes; a gene is +1 in a cell where at least one of its molecules was
counted. Cells have types, known from their surface. Do patterns of genes that are on and off
together tell the types apart?

A gene that is off may only have been missed, and most genes are off in most cells of any type.
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import as_table, draw_results, others, ours, split, towards_samples

import dualtap as dt
from dualtap.datasets import load_pbmc

cells = load_pbmc()
print(cells.description)
data = split(cells.X, cells.y, n_train=500, n_test=200)

# %%
# Patterns
# --------
# Ten are asked for, as many as there are types.

model = dt.DualTAP(n_patterns=10, random_state=0).fit(data.X)
print(model.summary())

# %%
# Compared
# --------
# The ten types are not ten clusters: kinds of T cells differ little, and no method here finds them
# all.

results = [
    ours("DualTAP", model, data),
    *others(data, n_hidden=20, rates=(0.05,)),
]
print(as_table(results))

# %%
# What patterns mean
# ------------------
# Every cell overlaps with every pattern, because most genes are off in all. What counts is how much
# more or less than the average cell does. Patterns are directions, not types: a type is a mark on
# several of them, and related types have similar rows. That is why all overlaps together say more
# than the greatest.

overlap = model.transform(cells.X) * np.sign(
    (towards_samples(model, cells.X) * model.magnetizations_).sum(axis=1)
)
overlap = (overlap - overlap.mean(axis=0)) / overlap.std(axis=0)
table = np.array([overlap[cells.y == k].mean(axis=0) for k in range(10)])
rows = np.argsort(table @ np.linalg.svd(table)[2][0])

figure = plt.figure(figsize=(8, 6.5), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.6, 1])
ax = above.subplots()
image = ax.imshow(table[rows], cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
counts = np.bincount(cells.y)
ax.set_yticks(range(10), [f"{cells.target_names[k]} ({counts[k]})" for k in rows])
ax.set_xticks(range(model.n_patterns_), range(1, model.n_patterns_ + 1))
ax.set_xlabel("pattern")
ax.set_title("mean overlap of the cells of a type, in standard deviations", loc="left", fontsize=10)
above.colorbar(image, ax=ax)
draw_results(below, results)
plt.show()
