"""Pictures of a recovery. Matplotlib is imported only when one is drawn."""

from dualtap.plots.files import check_format
from dualtap.plots.learning import learning_figure, plot_learning, plot_singular_values
from dualtap.plots.path import plot_path
from dualtap.plots.patterns import plot_patterns
from dualtap.plots.recovery import plot_overlaps, plot_progress, plot_spectrum, recovery_figure

__all__ = [
    "check_format",
    "learning_figure",
    "plot_learning",
    "plot_overlaps",
    "plot_path",
    "plot_patterns",
    "plot_progress",
    "plot_singular_values",
    "plot_spectrum",
    "recovery_figure",
]
