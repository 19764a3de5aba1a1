"""The paper's figures and claims as experiments: run, stored, resumed, drawn.

Every experiment is a module with a constant ``EXPERIMENT``; it is imported when it is asked for.
"""

from importlib import import_module

from dualtap.experiments.experiment import Claim, Experiment, Results

NAMES = (
    *("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8"),
    *("weights", "students", "theory1", "theory2", "theory3"),
    *("extra1", "extra2", "extra3", "pairs", "phases"),
)

__all__ = ["NAMES", "Claim", "Experiment", "Results", "load"]


def load(name: str) -> Experiment:
    """Return an experiment by its name.

    Examples
    --------
    >>> from dualtap.experiments import load
    >>> load("fig2").title
    'Best solution of every round against the hidden patterns'
    """
    if name not in NAMES:
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}")
    experiment: Experiment = import_module(f"dualtap.experiments.{name}").EXPERIMENT
    return experiment
