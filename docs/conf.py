"""Sphinx configuration."""

import sys
from pathlib import Path

import matplotlib as mpl

from dualtap import __version__

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
mpl.use("agg")

project = "dualtap"
author = "The dualtap developers"
copyright = "2026, the dualtap developers"
release = version = __version__

extensions = [
    "drawn_math",
    "measured",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
html_math_renderer = "drawn"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "tutorials/*.ipynb", "tutorials/*.py"]
templates_path = ["_templates"]

autosummary_generate = True
# Names that differ in nothing but capitals are one file on some machines.
autosummary_filename_map = {
    "dualtap.metrics.Calibration": "dualtap.metrics.Calibration-class",
    "dualtap.metrics.Match": "dualtap.metrics.Match-class",
}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "tutorials",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "within_subsection_order": "tutorial_order.TutorialOrder",
    "reference_url": {"dualtap": None},
    "doc_module": ("dualtap",),
    "abort_on_example_error": True,
    "copyfile_regex": r"comparison\.py",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "plot_gallery": True,
}

html_theme = "furo"
html_title = f"dualtap {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}


def _skip_what_scikit_learn_adds(app, what, name, member, skip, options):
    """Leave scikit-learn's own methods to its own pages, whose labels they refer to."""
    return str(getattr(member, "__module__", "")).startswith("sklearn") or None


def setup(app):
    app.connect("autodoc-skip-member", _skip_what_scikit_learn_adds)
