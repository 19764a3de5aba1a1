"""What the paper is compared with: estimators of all N(N-1)/2 couplings, blind to patterns."""

from dualtap.baselines.decimation import DecimatedPseudoLikelihood, DecimationPath
from dualtap.baselines.mean_field import NaiveMeanField
from dualtap.baselines.pseudo_likelihood import PseudoLikelihood
from dualtap.baselines.regressions import RegularizationPath
from dualtap.baselines.screening import InteractionScreening

__all__ = [
    "DecimatedPseudoLikelihood",
    "DecimationPath",
    "InteractionScreening",
    "NaiveMeanField",
    "PseudoLikelihood",
    "RegularizationPath",
]
