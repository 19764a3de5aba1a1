"""What the paper is compared with: estimators of all N(N-1)/2 couplings, blind to patterns."""

from dualtap.baselines.mean_field import NaiveMeanField
from dualtap.baselines.pseudo_likelihood import PseudoLikelihood
from dualtap.baselines.regressions import RegularizationPath

__all__ = ["NaiveMeanField", "PseudoLikelihood", "RegularizationPath"]
