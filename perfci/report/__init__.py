"""A result as text: terminal, Markdown, JSON, JUnit, CSV, and pages of HTML.

Pure except for ``templates``, which reads the template files. Nothing here measures, decides or
prints. Every untrusted string is escaped before it leaves this package.
"""
