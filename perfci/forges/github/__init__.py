"""What GitHub gets: of a report one comment and one check, of a trend an issue a regression.

Nothing else speaks to GitHub. Pure but for the two clients, ``posting`` and ``issue_posting``,
which decide from what GitHub says now. Where a report may be posted comes from the event and from
GitHub, never from the report.
"""
