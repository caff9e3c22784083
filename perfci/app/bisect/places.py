"""What a search runs over: commits, or releases of a package."""

from __future__ import annotations

from typing import Protocol

from perfci.app.bisect.state import Range
from perfci.checkout.repository import Resolved
from perfci.model.bisection import NamedCommit
from perfci.session.workplace import Wanted


class Places(Protocol):
    """What a search runs over, from good to bad: commits, or releases of a package.

    ``identity`` names it in the cache folder; ``package`` is empty for commits. ``benchmarks_of``
    is the commit whose benchmark files all run.
    """

    package: str
    whole: Range
    identity: tuple[str, ...]
    benchmarks_of: Resolved

    def side(self, name: str, commit: NamedCommit) -> Wanted:
        """Return a place as a side to measure."""
        ...

    def branches(self, sha: str, /) -> tuple[Range, ...]:
        """Return the branches that a place merged."""
        ...
