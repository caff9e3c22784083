"""Addresses of a forge's pages: a commit, a comparison, a pull request, a new issue, a search.

They are GitHub's, which Gitea and Forgejo mostly share, unless the host is GitLab's or Bitbucket's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from perfci.report.site.words import SHORT

_SHA = re.compile(r"[0-9a-f]{7,64}")
_PULL = re.compile(
    r"Merge pull request #(?P<merged>\d{1,9})\b|\((?P<sign>[#!])(?P<squashed>\d{1,9})\)$"
)
"""The subjects that forges give to the commit of a merged or squashed pull request."""

SEARCHES = {
    "gitlab": (".gitlab/perfci-bisect.yml", "-/pipelines/new?var[PERFCI_BISECT]={change}"),
    "github": (".github/workflows/perfci-bisect.yml", "actions/workflows/perfci-bisect.yml"),
}
"""By forge, the file that searches for a change's commit, and the page of the form to start it."""


def _kind(forge: str) -> str:
    host = urlsplit(forge).hostname or ""
    return next((name for name in ("gitlab", "bitbucket", "github") if name in host), "")


def patterns(forge: str) -> tuple[str, str]:
    """Return the addresses of a commit and of a comparison, with ``{before}`` and ``{after}``."""
    if not urlsplit(forge).hostname:
        return "", ""
    if _kind(forge) == "gitlab":
        return f"{forge}/-/commit/{{after}}", f"{forge}/-/compare/{{before}}...{{after}}"
    if _kind(forge) == "bitbucket":
        return f"{forge}/commits/{{after}}", f"{forge}/branches/compare/{{after}}..{{before}}"
    return f"{forge}/commit/{{after}}", f"{forge}/compare/{{before}}...{{after}}"


def address(forge: str, commits: tuple[str, str]) -> str:
    """Return the address of a range of commits, or "" if its end or the forge isn't known."""
    before, after = commits
    commit, compare = patterns(forge)
    if not _SHA.fullmatch(after):
        return ""
    several = before != after and _SHA.fullmatch(before)
    pattern = compare if several else commit
    return pattern.replace("{before}", before[:SHORT]).replace("{after}", after[:SHORT])


def pull_request(forge: str, subject: str) -> tuple[str, str]:
    """Return the name (``#123``) and the address of a commit's pull request, by its ``subject``.

    Both are empty if the subject names none. The address is empty if the forge isn't known. An
    unknown host is taken for Gitea's, whose issues' pages lead on to pull requests.
    """
    match = _PULL.search(subject.strip())
    if match is None:
        return "", ""
    number = match["merged"] or match["squashed"]
    pages = {"gitlab": "-/merge_requests", "bitbucket": "pull-requests", "github": "pull"}
    page = f"{forge}/{pages.get(_kind(forge), 'issues')}/{number}"
    return f"{match['sign'] or '#'}{number}", page if urlsplit(forge).hostname else ""


def new_issue(forge: str, title: str, body: str) -> str:
    """Return the address of the form of a new issue with this text, or "" if there is none."""
    kind = _kind(forge)
    if not urlsplit(forge).hostname or kind == "bitbucket":
        return ""
    title, body = quote(title, safe=""), quote(body, safe="")
    if kind == "gitlab":
        return f"{forge}/-/issues/new?issue[title]={title}&issue[description]={body}"
    return f"{forge}/issues/new?title={title}&body={body}"


def search_page(forge: str, has_file: Callable[[str], bool]) -> str:
    """Return the form that starts a search, or "" if its file or the forge isn't there.

    The id of the change goes in place of ``{change}``. A form without that wants it typed in.
    """
    file, page = SEARCHES.get(_kind(forge) or "github", ("", ""))
    return f"{forge}/{page}" if page and urlsplit(forge).hostname and has_file(file) else ""
