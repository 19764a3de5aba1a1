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
from comparison import as_table, draw_results, others, ours, split

import dualtap as dt
from dualtap.datasets import load_pbmc

cells = load_pbmc()
print(cells.description)
data = split(cells.X, cells.y, n_train=500, n_test=200)

# %%
# Patterns
# --------
# With default parameters. Fields explain how often each gene is detected, patterns the
# correlations between genes. A gene that is not in a pattern is 0, and every pattern has its own
# strength.

model = dt.HopfieldPatterns(random_state=0).fit(data.X)
print(model.summary())

# %%
# To interpret a pattern, compare the cells whose overlap is large (by more than a standard
# deviation, on the side of the largest ones) with all others, and list the genes that are detected
# more often. Known markers of a cell type appear together: CD79A and MS4A1 of B cells, NKG7 and
# PRF1 of killer cells. Some patterns also depend on the number of genes detected in a cell, which
# is a property of the measurement, not of the type.

overlap = model.transform(cells.X)
overlap = (overlap - overlap.mean(axis=0)) / overlap.std(axis=0)
overlap *= np.where((overlap**3).sum(axis=0) < 0, -1, 1)
marks = []
for column in overlap.T:
    gain = cells.X[column > 1].mean(axis=0) - cells.X[column <= 1].mean(axis=0)
    marks.append([cells.names[gene] for gene in np.argsort(-gain)[:6]])
    print(f"pattern {len(marks)}:", *marks[-1])

# %%
# Compared
# --------
# The RBM has as many hidden units as there are patterns; k-means and the mixture are given the
# number of types, ten. The ten types are not ten clusters: types of T cells differ little, and no
# method here finds them all. The score measures how well a gene is predicted from the other genes
# of its cell.

results = [
    ours("HopfieldPatterns", model, data),
    *others(data, model.n_patterns_, (0.05, 0.1)),
]
print(as_table(results))

# %%
# What patterns mean
# ------------------
# Patterns are directions, not types: a type has characteristic overlaps with several of them, and
# related types have similar rows. Therefore all overlaps together are more informative than the
# largest.

table = np.array([overlap[cells.y == k].mean(axis=0) for k in range(10)])
rows = np.argsort(table @ np.linalg.svd(table)[2][0])

figure = plt.figure(figsize=(8, 7.5), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.6, 1])
ax = above.subplots()
image = ax.imshow(table[rows], cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
counts = np.bincount(cells.y)
ax.set_yticks(range(10), [f"{cells.target_names[k]} ({counts[k]})" for k in rows])
names = [f"{k}: {genes[0]}, {genes[1]}" for k, genes in enumerate(marks, start=1)]
ax.set_xticks(range(model.n_patterns_), names, rotation=40, ha="right", fontsize=8)
ax.set_xlabel("pattern, and two genes that mark it")
ax.set_title("mean overlap of the cells of a type, in standard deviations", loc="left", fontsize=10)
above.colorbar(image, ax=ax)
draw_results(below, results)
plt.show()
