"""
Votes with absences
===================

435 members of a parliament, 16 votes, yes or no or absent. Who votes with whom? Votes that were not
cast are never scored.

The parliament is invented, in the manner of a well-known table of the American congress: two
parties, inside which members vote independently. So the right answer is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from comparison import Result, as_table, draw_results, others, ours, split

import dualtap as dt
from dualtap.datasets import load_mixture

votes = load_mixture("votes")
print(votes.description)
print(f"{np.isnan(votes.X).mean():.1%} of the votes were not cast")
data = split(votes.X, votes.y, n_train=300, n_test=135)

# %%
# One pattern, two parties
# ------------------------
# To a Hopfield model a pattern and its negative are one and the same. Two parties that vote against
# each other are therefore *one* pattern: the sign of a member's overlap with it says on which side
# the member is, its size how faithful the member is to the side. ``assign`` gives both.

axis = dt.HopfieldPatterns(n_patterns=1, random_state=0).fit(data.X)
side = axis.assign(data.X_test).sign

# %%
# With default parameters, the number of patterns is the one that minimises the description length.
# Votes on which all agree need no pattern: the fields explain them. One party that is more of one
# mind than the other makes a further pattern, with a strength of its own.

blind = dt.HopfieldPatterns(random_state=0).fit(data.X)
print(blind.summary())

# %%
# Compared
# --------
# Members that no fit has seen: are their parties found, and how well is a vote predicted from the
# member's other votes? Others are given the number of parties; those that know no missing entries
# get the middle value for them.

results = [
    Result("HopfieldPatterns, one pattern, side", data.agreement(side), axis.score(data.X_test)),
    ours("HopfieldPatterns, blind", blind, data),
    *others(data, n_hidden=4),
]
print(as_table(results))

# %%
# A mixture of two parties is what the data were drawn from. What a pattern gives is the line of
# conflict, and each member's place on it. A vote in the middle of the left panel takes no part.

figure = plt.figure(figsize=(8, 7), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=[1.5, 1])
left, right = above.subplots(1, 2, width_ratios=[1.4, 1])
turn = 1 if axis.magnetizations_[0].sum() >= 0 else -1
line = turn * axis.magnetizations_[0]
order = np.argsort(votes.teacher.means[1] - votes.teacher.means[0], kind="stable")
for mean, party, colour in zip(
    votes.teacher.means, votes.target_names, ("tab:red", "tab:blue"), strict=True
):
    left.plot(mean[order], np.arange(16), "o", color=colour, label=f"{party}, true mean")
left.plot(1.12 * np.sign(line[order]), np.arange(16), "k|", ms=10, label="side of the pattern")
left.set_yticks(np.arange(16), np.array(votes.names)[order])
left.invert_yaxis()
left.set_xticks([-1, 0, 1], ["no", "divided", "yes"])
left.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, handletextpad=0.1)
place = turn * axis.transform(data.X_test)[:, 0]
right.hist(
    [place[data.y_test == k] for k in (0, 1)],
    bins=np.linspace(-1, 1, 17),
    stacked=True,
    color=["tab:red", "tab:blue"],
    label=votes.target_names,
)
right.set_xlabel("overlap with the pattern")
right.set_ylabel("members")
right.legend(fontsize=8)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
draw_results(below, results)
plt.show()
