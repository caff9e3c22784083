"""What base's own tree has: a case that failed on base alone is new only where base lacks it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from perfci.config.loading import load_config
from perfci.errors import BenchmarkError, UsageError
from perfci.model.case import Case
from perfci.session.discovery import imported_by
from perfci.session.executor import Executor
from perfci.session.plan import SessionPlan, files_in
from perfci.session.source import written_in

_LEAST_S = 60.0
"""Base's own files get so long to import, even where the session's budget is spent."""


@dataclass(frozen=True, slots=True)
class OwnCases:
    """The cases of base's own benchmark files.

    ``broken`` are files that base itself cannot import, ``written`` the benchmarks that their text
    names, and saved models. Where ``known`` is false, nothing is known to be absent.
    """

    cases: frozenset[str]
    broken: frozenset[str]
    written: frozenset[str]
    known: bool = True

    def has(self, case: Case) -> bool:
        """Say whether base has ``case``, or may have it."""
        return (
            not self.known
            or case.id in self.cases
            or case.benchmark in self.written
            or case.file in self.broken
        )


def own_cases(plan: SessionPlan, executor: Executor, budget_end: float) -> OwnCases:
    """Return the cases of base's own benchmark files, imported in base's tree.

    A case that base's own definition skips is not among them.
    """
    base = next(side for side in plan.sides if side.name == "base")
    files = plan.benchmark_files(base.root)
    try:
        own = load_config(base.root)
    except UsageError:  # nobody could have measured by it
        return OwnCases(frozenset(), frozenset(), frozenset(), known=False)
    files += files_in(base.root, own.benchmarks, own.pattern)
    files = tuple(dict.fromkeys(files))
    saved = {one.name for one in own.saved}
    if not files:
        return OwnCases(frozenset(), frozenset(), frozenset(saved))
    here = replace(plan, benchmark_root=base.root, sides=(base,))
    order = replace(here.discovery_order(base), benchmark_files=files, saved=(), project=())
    until = max(budget_end, executor.now() + 2 * _LEAST_S)
    try:
        discovery = imported_by(here, base, executor, order, until).discovery
    except BenchmarkError:  # a benchmark that is written wrongly there
        return OwnCases(frozenset(), frozenset(), frozenset(), known=False)
    broken = {failure.case for failure in discovery.failures}
    unread = [file for file in files if Path(file).relative_to(base.root).as_posix() in broken]
    names = {name for ones in written_in(base.root, unread).values() for name in ones}
    cases = frozenset(case.id for case in discovery.cases if not case.skip)
    return OwnCases(cases, frozenset(broken), frozenset(names | saved))
