"""Everything that leaves the machine: GitHub, the CI step that posts to it, and messages.

Nothing here decides. For a report, GitHub gets one comment and one check. For a trend, it gets one
issue per regression. The step's event and GitHub say where a report may be posted, never the
report.
"""
