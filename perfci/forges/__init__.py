"""Everything that leaves the machine: GitHub, and the CI step that posts to it.

Nothing here decides. A report gets one comment and one check. The step's event and GitHub say where
a report may be posted, never the report.
"""
