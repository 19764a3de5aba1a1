"""What theory predicts, to measure against."""

from dualtap.theory.bayes import BayesLimit, critical_samples, paramagnetic_limit
from dualtap.theory.curie_weiss import (
    CurieWeissMoments,
    curie_weiss_log_partition,
    curie_weiss_log_partition_exact,
    curie_weiss_magnetization,
    curie_weiss_moments,
)
from dualtap.theory.mismatch import StudentLimit, student_limit, student_threshold
from dualtap.theory.replica import (
    ReplicaState,
    metastable_capacity,
    metastable_temperature,
    retrieval_capacity,
    retrieval_state,
    retrieval_temperature,
    spin_glass_state,
    spin_glass_temperature,
)
from dualtap.theory.stability import (
    SpectrumEdges,
    TwoStepModes,
    amp_critical_beta,
    amp_modes,
    marchenko_pastur_edges,
    opper_winther_modes,
    tap_critical_beta,
    tap_multiplier,
    tap_oscillation_beta,
)
from dualtap.theory.two_patterns import (
    two_pattern_log_partition,
    two_pattern_log_partition_exact,
)

__all__ = [
    "BayesLimit",
    "CurieWeissMoments",
    "ReplicaState",
    "SpectrumEdges",
    "StudentLimit",
    "TwoStepModes",
    "amp_critical_beta",
    "amp_modes",
    "critical_samples",
    "curie_weiss_log_partition",
    "curie_weiss_log_partition_exact",
    "curie_weiss_magnetization",
    "curie_weiss_moments",
    "marchenko_pastur_edges",
    "metastable_capacity",
    "metastable_temperature",
    "opper_winther_modes",
    "paramagnetic_limit",
    "retrieval_capacity",
    "retrieval_state",
    "retrieval_temperature",
    "spin_glass_state",
    "spin_glass_temperature",
    "student_limit",
    "student_threshold",
    "tap_critical_beta",
    "tap_multiplier",
    "tap_oscillation_beta",
    "two_pattern_log_partition",
    "two_pattern_log_partition_exact",
]
