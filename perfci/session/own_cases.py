"""What base's own tree has: a case that failed on base alone is new only where base lacks it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from perfci.config.loading import load_config
from perfci.errors import BenchmarkError, MeasureError, UsageError
from perfci.model.case import Case
from perfci.session.discovery import imported_by
from perfci.session.executor import Executor
from perfci.session.plan import SessionPlan, SidePlan, files_in
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


def own_cases(
    plan: SessionPlan,
    check_out_base: Callable[[], AbstractContextManager[SidePlan]],
    executor: Executor,
    budget_end: float,
) -> OwnCases:
    """Return the cases of base's own benchmark files, imported in a tree of base's commit as it is.

    A case that base's own definition skips is not among them.
    """
    unknown = OwnCases(frozenset(), frozenset(), frozenset(), known=False)
    with ExitStack() as stack:
        try:
            base = stack.enter_context(check_out_base())
            own = load_config(base.root)
        except UsageError:  # of its configuration: nobody could have measured by it
            return unknown
        except MeasureError:  # of its build, which succeeded with head's benchmark files
            return unknown
        files = plan.benchmark_files(base.root)
        files += files_in(base.root, own.benchmarks, own.pattern)
        files = tuple(dict.fromkeys(files))
        saved = {one.name for one in own.saved}
        if not files:
            return OwnCases(frozenset(), frozenset(), frozenset(saved))
        here = plan.of_side(base)
        order = replace(here.discovery_order(base), benchmark_files=files, saved=(), project=())
        until = max(budget_end, executor.now() + 2 * _LEAST_S)
        try:
            discovery = imported_by(here, base, executor, order, until).discovery
        except BenchmarkError:  # a benchmark that is written wrongly there
            return unknown
        broken = {failure.case for failure in discovery.failures}
        unread = [file for file in files if Path(file).relative_to(base.root).as_posix() in broken]
        names = {name for ones in written_in(base.root, unread).values() for name in ones}
    cases = frozenset(case.id for case in discovery.cases if not case.skip)
    return OwnCases(cases, frozenset(broken), frozenset(names | saved))
