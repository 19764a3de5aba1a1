"""Every tuned number of the recovery, with the benchmark that set it.

``python -m benchmarks sensitivity`` moves each by a fifth and shows what changes.
"""

JUDGED_ENTRIES = 2**21
CURVATURE_ENTRIES = 2**15
LARGEST_FIELD = 10.0
CHARGED = 1.1
CHARGED_IF_SEEN = 0.85
SAME = 0.9
TURNED = 0.0
STUDENTS = 16
COMPARED = 48
MOST_ADDED = 24
LINEAR = 0.2
FEWEST_EVENTS = 8
DIMENSIONS = 4
LEAST_GAIN = 0.1
ALWAYS_STUDENTS = 200
ONE_SIZE = 0.75
FLAT = 3.0
