"""Where a repository's remotes are: the web pages of its commits, and which addresses are alike."""

from __future__ import annotations

import re
from pathlib import Path

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


def remotes_of(root: Path) -> frozenset[str]:
    """Return the addresses of all remotes, as ``comparable_address`` gives them."""
    listed = attempt(root, "config", "--null", "--get-regexp", r"^remote\..*\.(push)?url$")
    addresses = (entry.partition("\n")[2] for entry in listed.output.split("\0"))
    return frozenset(filter(None, (comparable_address(address, root) for address in addresses)))


def comparable_address(address: str, root: Path | None = None) -> str:
    """Return an address that is equal for all ways to write it; nothing for one that has no form.

    SSH and HTTPS, a user, a port, the case of the host and ``.git`` make no difference. A path is
    relative to ``root``, and absolute where there is none.
    """
    if page := web_page(address):
        return page
    path = address.strip().removeprefix("file://")
    if not path or (root is None and not path.startswith("/")) or "://" in path:
        return ""
    place = Path(root or "/", path).resolve()
    return str(place.parent if place.name == ".git" else place).removesuffix(".git")


def web_page(remote: str) -> str:
    """Return the page of a remote's address; nothing for a path, or an address that has none."""
    found = _ADDRESS.fullmatch(remote.strip())
    return f"https://{found['host'].lower()}/{found['path'].removesuffix('.git')}" if found else ""
