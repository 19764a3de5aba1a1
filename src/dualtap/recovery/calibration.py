"""The tuned numbers of the recovery that decide what is found, with the benchmark that shows each.

They were set in trials on a few seeds and splits, not by whole runs of those benchmarks.
``python -m benchmarks sensitivity`` moves each by a fifth and shows what changes. Modules read
them as ``calibration.NAME``. Numbers that only bound work or rounding are beside the code.
"""

from dualtap.fitted.training import LARGEST_FIELD as LARGEST_FIELD

JUDGED_ENTRIES = 2**20
"""Entries of the samples by which models are compared (``benchmarks recovery``: time)."""
REFINED_ENTRIES = 2**25
"""Entries by which bits are set (``benchmarks general``: one strong pattern, M=20,000)."""
CURVATURE_ENTRIES = 2**15
"""Entries, at least, from which second derivatives come (``benchmarks real``: time)."""
CHARGED = 1.1
"""A ±1 pattern costs this times what the best gains on noise (``benchmarks nulls``),"""
CHARGED_IF_SEEN = 0.85
"""or this, for a direction above the noise edge (``benchmarks recovery``: P=1, M=125 to 500)."""
SAME = 0.9
"""Cosine of two patterns from which they are one (``benchmarks fits``)."""
CONFIRMED = 4.0
"""Nats beyond the costs by which a half of the samples confirms patterns (``benchmarks nulls``)."""
EVIDENT = 12.0
"""Nats by which patterns must be shorter than independent spins (``benchmarks nulls``)."""
HALVINGS = 3
"""Halvings of which the mean model is taken (``benchmarks real``: digits),"""
HALVED_OFTEN = 2**17
"""if samples and couplings have no more entries than this (``benchmarks real``: time)."""
LEAST_GAIN = 0.1
"""Nats by which a change must shorten the description (``benchmarks fits``: seeds)."""
STUDENTS = 16
"""Students of each kind in a round (``benchmarks real``)."""
COMPARED = 96
"""Candidates of one half that the other compares jointly (``benchmarks real``); a quarter of them
are added at once."""
ADDED_AT_ONCE = 4
"""Candidates added at once that are described (``benchmarks real``: objective, time),"""
ADDED_PER = 8
"""or one per so many patterns that the model has, if these are more."""
LINEAR = 0.2
"""Share of the variance up to which spins respond linearly (``benchmarks recovery``)."""
APART = 8.0
"""Times as large residuals as others have that show samples to be in no state of a model
(``benchmarks recovery``: random samples)."""
FEWEST_EVENTS = 8
"""Events of a rare spin below which its variance is not trusted (``benchmarks nulls``)."""
HIDDEN = 0.25
"""Patterns that may lie below the noise edge, as a share of those above it, if their number is
given (``benchmarks recovery``: P=1, M=125; P=20, M=1000)."""
DIMENSIONS = 4
"""One direction is looked at for so many spins (``benchmarks structure``: assemblies)."""
ONE_SIZE = 0.3
"""Entries are ±1 from this share of the way that noise leaves from normal ones to these
(``benchmarks general``: diluted; ``benchmarks recovery``: P=1)."""
PLAIN = 0.9
"""Squared cosine of a pattern with a direction from which it needs no rotation
(``benchmarks structure``: populations, keys)."""
FLAT = 3.0
"""Widths below the lower edge of noise that a direction is flat (``benchmarks general``)."""
