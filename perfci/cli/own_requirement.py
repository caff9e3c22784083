"""What to tell pip so that another machine gets the perfci that runs here."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution

from perfci.record.version import VERSION

_ADDRESS = re.compile(r"[a-z]+\+(https|ssh)://[A-Za-z0-9+:/@._~%-]+")
"""What another machine can reach, and what stands between a script's single quotes as it is."""


@dataclass(frozen=True, slots=True)
class OwnRequirement:
    """A requirement in pip's words; ``doubt`` says why another machine may find another package."""

    text: str
    doubt: str = ""


def own_requirement(extra: str = "") -> OwnRequirement:
    """Return perfci as it was installed here: a commit of a repository, else this version.

    pip notes where a package came from that was in no index (PEP 610).
    """
    name = f"perfci[{extra}]" if extra else "perfci"
    version = f"{name}=={VERSION}"
    try:
        noted = distribution("perfci").read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    if noted is None:
        return OwnRequirement(version)
    origin = json.loads(noted)
    vcs, url = origin.get("vcs_info", {}), str(origin.get("url", ""))
    address = f"{vcs.get('vcs')}+{url}@{vcs.get('commit_id')}"
    if vcs and _ADDRESS.fullmatch(address):
        return OwnRequirement(f"{name} @ {address}")
    return OwnRequirement(
        version,
        f"perfci is installed from {url} here, which other machines can't install from; "
        f"{version} of a package index may be somebody else's",
    )
