"""What GitLab gets: of a report one note on its merge request and one commit status.

What to write is decided where GitHub's is (``publish.github``): the comment is the same. Which
merge request comes from the job's variables, never from the report.
"""
