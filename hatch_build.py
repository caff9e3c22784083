"""The README as a package index shows it: there, a relative link or image leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!#|[a-z]+:)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Sets the project's ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set it, with links to this version's files."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, metadata["urls"]["Source"], f"v{metadata['version']}"),
        }


def absolute(text: str, repository: str, ref: str) -> str:
    """Return Markdown whose relative links lead to ``ref`` of a repository on GitHub."""

    def link(match: re.Match[str]) -> str:
        image, words, path = match.groups()
        return f"{image}[{words}]({repository}/{'raw' if image else 'blob'}/{ref}/{path})"

    return RELATIVE.sub(link, text)
