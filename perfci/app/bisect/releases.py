"""A search over the releases of a package that the project uses; the project stays as it is."""

from __future__ import annotations

from perfci.app.bisect.state import Range
from perfci.app.project import Project
from perfci.bisect.search import Search
from perfci.checkout.releases import Releases
from perfci.errors import UsageError
from perfci.model.bisection import NamedCommit
from perfci.session.workplace import Wanted

_SHOWN = 8


class ReleasesOf:
    """The releases ``GOOD..BAD`` of a package, beneath one commit of the project."""

    def __init__(self, project: Project, package: str, wanted: str, python: str | None) -> None:
        self.package = package
        around = project.surroundings()
        self.benchmarks_of = project.repository.resolve("HEAD")
        self._interpreter = project.side("head", "HEAD", python).python
        # beside the cache: what lies in it is a tree of the project, and its code another side's
        folder = around.cache.with_name(f"{around.cache.name}-releases")
        self._releases = Releases(package, self._interpreter, folder, around.inherited)
        self.whole = _range(package, wanted, self._releases.versions())
        self.identity: tuple[str, ...] = (
            *(package, self.whole.good.sha, self.whole.commits[-1].sha),
            *(self.benchmarks_of.sha, self._interpreter),
        )

    def side(self, name: str, commit: NamedCommit) -> Wanted:
        """Return the project with a release as a side to measure. MeasureError without a wheel."""
        return Wanted(name, self.benchmarks_of, self._releases.python_of(commit.sha))

    def branches(self, _sha: str, /) -> tuple[Range, ...]:
        """Return nothing: a release merges none."""
        return ()


def _range(package: str, wanted: str, versions: tuple[str, ...]) -> Range:
    ends = [_place(package, one, versions) for one in wanted.split("..", 1)]
    if ends[0] >= ends[1]:
        raise UsageError(
            "empty-range",
            f"{wanted} has no release of {package} after the older end",
            "Write the older release first: 2.11..2.13.",
        )
    named = [NamedCommit(one, f"{package} {one}") for one in versions[ends[0] : ends[1] + 1]]
    return Range(named[0], tuple(named[1:]), Search(len(named) - 1))


def _place(package: str, given: str, versions: tuple[str, ...]) -> int:
    for place, version in enumerate(versions):
        if given == version or _same(given, version):
            return place
    newest = ", ".join(reversed(versions[-_SHOWN:]))
    raise UsageError(
        "no-release",
        f"pip finds no release {given!r} of {package!r} for this Python",
        f"The newest are {newest}." if newest else "Check the name, and which index pip asks.",
    )


def _same(given: str, version: str) -> bool:
    """Say whether 2.11 is 2.11.0 or 2.11.0+cpu."""
    given, version = (one.partition("+")[0] for one in (given, version))
    while given.endswith(".0"):
        given = given[:-2]
    while version.endswith(".0"):
        version = version[:-2]
    return given == version
