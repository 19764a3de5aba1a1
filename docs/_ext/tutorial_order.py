"""The order of the tutorials: from a questionnaire to the physics behind it all."""

from __future__ import annotations

ORDER = ("questionnaire", "digits", "mnist", "cells", "physics")


class TutorialOrder:
    """Sort key of sphinx-gallery: the place in ``ORDER``, everything else after it by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the key of a file."""
        name = filename.removeprefix("plot_").removesuffix(".py")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:  # Sphinx compares configurations by it
        return "TutorialOrder"
