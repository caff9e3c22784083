"""Addresses of GitHub's pages: a commit, a comparison, a pull request."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from perfci.report.site.words import SHORT

_SHA = re.compile(r"[0-9a-f]{7,64}")
_PULL = re.compile(r"Merge pull request #(?P<merged>\d{1,9})\b|\(#(?P<squashed>\d{1,9})\)$")
"""The subjects that GitHub gives to the commit of a merged or squashed pull request."""


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
