"""Sphinx configuration."""

from dualtap import __version__

project = "dualtap"
author = "The dualtap developers"
copyright = "2026, the dualtap developers"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_parser",
    "numpydoc",
]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"dualtap {version}"
