"""Sphinx: the site of the documentation. ``build.py`` beside it fills the folder it works in."""

import perfci

project = "perfci"
author = "the perfci developers"
copyright = author
version = release = perfci.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"perfci {version}"
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
exclude_patterns = ["images/**"]  # comments as they are posted, which pages show as pictures
