"""What GitHub is told about a report: one comment, one check. Nothing else speaks to GitHub.

Pure but for ``client``, which talks, ``posting``, which decides from what GitHub says now, and
``step_summary``, which writes a file. Where a report may be posted comes from the event and from
GitHub, never from the report.
"""
