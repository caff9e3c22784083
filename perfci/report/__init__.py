"""A result as text: terminal, Markdown, JSON, JUnit, CSV.

Pure but for ``templates``, which reads the files beside the package. Nothing here measures,
decides or prints, and no string of a stranger's leaves it unescaped.
"""
