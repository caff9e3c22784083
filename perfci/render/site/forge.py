"""Links from commits to their pages on a forge, and from a range to its comparison."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from perfci.render.site.words import SHORT

_SHA = re.compile(r"[0-9a-f]{7,64}")


def patterns(forge: str) -> tuple[str, str]:
    """Return the addresses of a commit and of a comparison, with ``{before}`` and ``{after}``.

    GitHub's, which Gitea and Forgejo share, but for hosts that are GitLab's or Bitbucket's.
    """
    host = urlsplit(forge).hostname or ""
    if not host:
        return "", ""
    if "gitlab" in host:
        return f"{forge}/-/commit/{{after}}", f"{forge}/-/compare/{{before}}...{{after}}"
    if "bitbucket" in host:
        return f"{forge}/commits/{{after}}", f"{forge}/branches/compare/{{after}}..{{before}}"
    return f"{forge}/commit/{{after}}", f"{forge}/compare/{{before}}...{{after}}"


def address(forge: str, commits: tuple[str, str]) -> str:
    """Return where a range of commits is seen; nothing where it or the forge isn't known."""
    before, after = commits
    commit, compare = patterns(forge)
    if not _SHA.fullmatch(after):
        return ""
    several = before != after and _SHA.fullmatch(before)
    pattern = compare if several else commit
    return pattern.replace("{before}", before[:SHORT]).replace("{after}", after[:SHORT])
