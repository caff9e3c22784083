"""The web pages of a repository's commits: where its remote is on a forge that has some."""

from __future__ import annotations

import re

from perfci.checkout.command import attempt
from perfci.checkout.repository import Repository

_ADDRESS = re.compile(
    r"(?:https?://(?:[^/@\s]*@)?|ssh://(?:[^/@\s]*@)?|git://|[\w.-]+@)"
    r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::\d+(?=/))?[:/]/?"
    r"(?P<path>[\w.~-]+(?:/[\w.~-]+)+)/?",
    re.ASCII,
)


def forge_of(repository: Repository | None) -> str:
    """Return the repository's page on its forge, as ``https://github.com/octo/models``, or nothing.

    What is secret in the remote's address (a user, a token) is no part of it.
    """
    if repository is None:
        return ""
    remote = attempt(repository.root, "config", "--get", "remote.origin.url")
    return web_page(remote.output) if remote.status == 0 else ""


def web_page(remote: str) -> str:
    """Return the page of a remote's address; nothing for a path, or an address that has none."""
    found = _ADDRESS.fullmatch(remote.strip())
    return f"https://{found['host'].lower()}/{found['path'].removesuffix('.git')}" if found else ""
