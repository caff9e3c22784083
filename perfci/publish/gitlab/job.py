"""Pure: which commit, and whose, a job of GitLab CI is about, by GitLab's own variables."""

from __future__ import annotations

from collections.abc import Mapping

from perfci.errors import UsageError
from perfci.publish.github.event import MERGE_REQUEST, Nothing, Wanted, full_sha
from perfci.render.clean import clean_line

_OTHERWISE = (
    "let the job run in merge requests' pipelines alone "
    '(rules: - if: $CI_PIPELINE_SOURCE == "merge_request_event"), or give --pull NUMBER.'
)


def read_job(variables: Mapping[str, str]) -> Wanted | Nothing:
    """Return what the job's pipeline is about; UsageError where a variable is not GitLab's.

    A pipeline of merged results has made a commit of its own; the merge request's head is another.
    """
    head = variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or variables.get("CI_COMMIT_SHA", "")
    number = variables.get("CI_MERGE_REQUEST_IID", "")
    if number:
        if not (number.isascii() and number.isdigit() and 0 < int(number) < 10**9):
            raise UsageError(
                "bad-event",
                f"CI_MERGE_REQUEST_IID is {clean_line(number, 40)!r}, no merge request's number",
                "Run it in a merge request's pipeline, or name the merge request: --pull NUMBER",
            )
        own = not is_of_a_fork(variables)
        return Wanted(int(number), full_sha(head, "CI_COMMIT_SHA"), own=own, term=MERGE_REQUEST)
    branch, project = variables.get("CI_COMMIT_BRANCH", ""), variables.get("CI_PROJECT_ID", "")
    if not branch or not project or branch == variables.get("CI_DEFAULT_BRANCH"):
        return Nothing("this pipeline has no merge request", f"To have one, {_OTHERWISE}")
    return Wanted(
        head_sha=full_sha(head, "CI_COMMIT_SHA"),
        branch=branch,
        source=project,
        own=True,
        term=MERGE_REQUEST,
        advice=f"Open one and run this job again, {_OTHERWISE}",
    )


def is_of_a_fork(variables: Mapping[str, str]) -> bool:
    """Say whether the pipeline is of a merge request from another project.

    One that doesn't say where it comes from is.
    """
    if not variables.get("CI_MERGE_REQUEST_IID"):
        return False
    source = variables.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "")
    return not source or source != variables.get("CI_MERGE_REQUEST_PROJECT_ID")
