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
class Links:
    """``repository`` is the address of the event's own, and ``commits`` are those known in it.

    ``details`` is where the report's page is, or empty.
    """

    repository: str
    commits: frozenset[str]
    details: str = ""

    def page(self) -> Safe:
        """Return the link to the report's page, or nothing."""
        if not ADDRESS.fullmatch(self.details):
            return Safe("")
        return Safe(f"[Every row, drawn]({self.details})")

    def commit(self, sha: str, shown: str) -> Safe:
        """Return ``shown`` in code, as a link where ``sha`` is one of the known commits."""
        return self._link(shown, f"commit/{sha}" if sha in self.commits else "")

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
        return self._link(f"{parts[-1]}:{line}", f"blob/{sha}/{quote(file)}#L{line:d}")

    def _link(self, shown: str, address: str) -> Safe:
        text = code(shown)
        if not address or not _REPOSITORY.fullmatch(self.repository):
            return text
        return Safe(f"[{text}]({self.repository}/{address})")


NO_LINKS = Links("", frozenset())


def known_links(repository: str, commits: frozenset[str], details: str = "") -> Links:
    """Return links to those of ``commits`` that are whole SHAs, and to the page at ``details``."""
    return Links(repository, frozenset(sha for sha in commits if _SHA.fullmatch(sha)), details)
