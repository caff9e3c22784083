"""Addresses of GitHub's pages: a commit, a comparison, a pull request, a new issue, a search."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from perfci.report.site.words import SHORT

_SHA = re.compile(r"[0-9a-f]{7,64}")
_PULL = re.compile(r"Merge pull request #(?P<merged>\d{1,9})\b|\(#(?P<squashed>\d{1,9})\)$")
"""The subjects that GitHub gives to the commit of a merged or squashed pull request."""

SEARCH_FILE = ".github/workflows/perfci-bisect.yml"
"""The workflow that searches for a change's commit."""
_SEARCH_PAGE = "actions/workflows/perfci-bisect.yml"


def patterns(forge: str) -> tuple[str, str]:
    """Return the addresses of a commit and of a comparison, with ``{before}`` and ``{after}``."""
    if not urlsplit(forge).hostname:
        return "", ""
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

    Both are empty if the subject names none. The address is empty if the forge isn't known.
    """
    match = _PULL.search(subject.strip())
    if match is None:
        return "", ""
    number = match["merged"] or match["squashed"]
    return f"#{number}", f"{forge}/pull/{number}" if urlsplit(forge).hostname else ""


def new_issue(forge: str, title: str, body: str) -> str:
    """Return the address of the form of a new issue with this text, or "" if there is none."""
    if not urlsplit(forge).hostname:
        return ""
    return f"{forge}/issues/new?title={quote(title, safe='')}&body={quote(body, safe='')}"


def search_page(forge: str, has_file: Callable[[str], bool]) -> str:
    """Return the form that starts a search, or "" if its file or the forge isn't there."""
    known = urlsplit(forge).hostname and has_file(SEARCH_FILE)
    return f"{forge}/{_SEARCH_PAGE}" if known else ""
