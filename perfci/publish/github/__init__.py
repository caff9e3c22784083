"""What GitHub is told: of a report one comment and one check, of a trend an issue a regression.

Nothing else speaks to GitHub. Pure but for the two clients, ``posting`` and ``issue_posting``,
which decide from what GitHub says now, and ``step_summary``, which writes a file. Where a report
may be posted comes from the event and from GitHub, never from the report.
"""
