"""Sphinx: the site of the documentation. ``build.py`` fills the folder that it works in."""

import perfci

project = "perfci"
author = "the perfci developers"
copyright = author
version = release = perfci.__version__
extensions = ["myst_parser"]
html_theme = "furo"
smartquotes = False  # options have two dashes
html_title = f"perfci {version}"
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
exclude_patterns = ["images/**"]  # comments as they are posted, which pages show as pictures
