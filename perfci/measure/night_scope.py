"""What a night is to measure: the environment here, and the cases that every commit is to have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from perfci.errors import MeasureError, PerfciError
from perfci.measure.discovering import NO_TIME_TO_IMPORT
from perfci.measure.night_record import UNOPENED
from perfci.record.case import Case
from perfci.record.run import Environment
from perfci.units import counted

_MOST_TRIED = 5


@dataclass(frozen=True, slots=True)
class Scope:
    """The environment, the cases, and the commits that could not be opened to find these out."""

    environment: Environment
    cases: tuple[Case, ...]
    broken: Mapping[str, PerfciError] = field(default_factory=dict)


def find_scope(
    shas: Sequence[str],
    see: Callable[[str], tuple[Environment, tuple[Case, ...]]],
    known_broken: frozenset[str],
) -> Scope:
    """Return what the first of ``shas`` shows that can be opened, tried by ``see``.

    One that is known to be broken here is not built again to find that out. One that had no time
    to import took half of it: the next has a try. MeasureError where the first five can't be
    opened, or all are known to be broken.
    """
    broken: dict[str, PerfciError] = {}
    for sha in (sha for sha in shas if sha not in known_broken):
        try:
            environment, cases = see(sha)
        except PerfciError as error:
            if error.slug not in UNOPENED | {NO_TIME_TO_IMPORT}:
                raise
            broken[sha] = error
            if len(broken) == _MOST_TRIED:
                break
        else:
            return Scope(environment, cases, broken)
    hurried = next((one for one in broken.values() if one.slug == NO_TIME_TO_IMPORT), None)
    if hurried is not None:
        raise hurried
    if broken:
        first = next(iter(broken.values()))
        raise MeasureError(
            "nothing-builds",
            f"of the newest {counted(len(broken), 'commit')} none can be measured: {first.message}",
            first.advice,
        )
    raise MeasureError(
        "nothing-builds",
        "all of these commits failed here before, each before anything was measured",
        "Mend the newest, or try all of them again with --retry-failed.",
    )


def known_broken(failed: Sequence[tuple[str, Mapping[str, str]]]) -> frozenset[str]:
    """Return the commits of runs without a point that ended before anything was measured."""
    return frozenset(
        sha
        for sha, reasons in failed
        if reasons and all(why.partition(":")[0] in UNOPENED for why in reasons.values())
    )
