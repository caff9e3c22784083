"""Where a comment's links lead: into the repository of the event, at commits that GitHub confirmed.

Nothing of a report becomes part of an address but a path inside the measured tree, quoted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from perfci.render.escape import Safe, code

_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REPOSITORY = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_LONGEST_PATH = 200
ADDRESS = re.compile(r"https?://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~%-]*)*(?:#[A-Za-z0-9._-]*)?")
"""What may be linked as it stands: nothing in it ends a link or begins another."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a forge shows what is in a repository, below that one's address."""

    commit: str
    line: str
    comment: str


GITHUB = Addresses(
    "commit/{sha}", "blob/{sha}/{file}#L{line}", "pull/{pull}#issuecomment-{comment}"
)
GITLAB = Addresses(
    "-/commit/{sha}", "-/blob/{sha}/{file}#L{line}", "-/merge_requests/{pull}#note_{comment}"
)
FORGEJO = Addresses(
    "commit/{sha}", "src/commit/{sha}/{file}#L{line}", "pulls/{pull}#issuecomment-{comment}"
)


@dataclass(frozen=True, slots=True)
class Links:
    """``repository`` is the address of the event's own, and ``commits`` are those known in it.

    ``details`` is where the report's page is, or empty. ``addresses`` are the forge's.
    """

    repository: str
    commits: frozenset[str]
    details: str = ""
    addresses: Addresses = GITHUB

    def page(self) -> Safe:
        """Return the link to the report's page, or nothing."""
        if not ADDRESS.fullmatch(self.details):
            return Safe("")
        return Safe(f"[Every row, drawn]({self.details})")

    def commit(self, sha: str, shown: str) -> Safe:
        """Return ``shown`` in code, as a link where ``sha`` is one of the known commits."""
        return self._link(
            shown, self.addresses.commit.format(sha=sha) if sha in self.commits else ""
        )

    def place(self, sha: str, file: str, line: int) -> Safe:
        """Return ``file:line`` in code; a link with the file's name alone where it leads there."""
        parts = file.split("/")
        known = (
            sha in self.commits
            and 0 < len(file) <= _LONGEST_PATH
            and file.isprintable()
            and not {"", ".", ".."} & set(parts)
        )
        if not known:
            return code(f"{file}:{line}")
        address = self.addresses.line.format(sha=sha, file=quote(file), line=line)
        return self._link(f"{parts[-1]}:{line}", address)

    def comment(self, pull: int, comment: int) -> str:
        """Return the address of a comment on a pull request; nothing without a repository's."""
        address = self.addresses.comment.format(pull=pull, comment=comment)
        return f"{self.repository}/{address}" if self.repository else ""

    def _link(self, shown: str, address: str) -> Safe:
        text = code(shown)
        if not address or not _REPOSITORY.fullmatch(self.repository):
            return text
        return Safe(f"[{text}]({self.repository}/{address})")


NO_LINKS = Links("", frozenset())


def known_links(
    repository: str, commits: frozenset[str], details: str = "", addresses: Addresses = GITHUB
) -> Links:
    """Return links to those of ``commits`` that are whole SHAs, and to the page at ``details``."""
    whole = frozenset(sha for sha in commits if _SHA.fullmatch(sha))
    return Links(repository, whole, details, addresses)
