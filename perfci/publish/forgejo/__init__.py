"""What a Forgejo or a Gitea gets: of a report one comment and one commit status.

What to write is decided where GitHub's is (``publish.github``): the comment is the same, and so
are the events.
"""
