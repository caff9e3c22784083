"""A starter of each side, while a sweep visits the cases of one benchmark file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from perfci.model.case import Case
from perfci.session.executor import Executor, OpenStarters, Starter
from perfci.session.journal import Journal
from perfci.session.plan import SessionPlan
from perfci.session.schedule import starting_order


class Starters:
    """Opens starters, and remembers the files whose imports don't allow any."""

    def __init__(
        self, plan: SessionPlan, executor: Executor, journal: Journal, budget_end: float
    ) -> None:
        self._plan = plan
        self._executor = executor
        self._journal = journal
        self._budget_end = budget_end
        self._unfit: dict[str, str] = {}

    @contextmanager
    def of(
        self, cases: Sequence[Case], sweep: int, *, at_once: bool = False
    ) -> Iterator[OpenStarters | None]:
        """Yield a starter of each side, or None where each worker has to start afresh.

        ``cases`` are of one file. Both sides are started alike: a forked worker beside a fresh
        one would compare the ways to start. ``at_once``: not one after the other; the second one
        then starts on the parent's cores, which has nothing else to do. Raises BudgetEnded.
        """
        file = cases[0].file
        if not self._plan.quiet.fork or file in self._unfit:
            yield None
            return
        with ExitStack() as stack:
            starters: dict[str, Starter] = {}
            waiting: list[Starter] = []
            for side in starting_order(self._plan.sides, sweep):
                launch = self._plan.launch(side)
                if waiting and self._plan.cores.parent:
                    launch = replace(launch, affinity=self._plan.cores.parent)
                starter = self._executor.starter(
                    self._plan.starter_order(side, cases), launch, budget_end=self._budget_end
                )
                stack.callback(starter.close)
                starters[side.name] = starter
                waiting.append(starter)
                if at_once and len(starters) < len(self._plan.sides):
                    continue
                unfit = self._imported(waiting)
                waiting.clear()
                if unfit:
                    self._unfit[file] = unfit
                    self._journal.note(f"{file}: workers start afresh: {unfit}")
                    stack.close()
                    yield None
                    return
            yield OpenStarters(starters, at_once)

    def _imported(self, starters: Sequence[Starter]) -> str:
        """Wait until all have imported; return why one can't fork, or nothing."""
        for starter in starters:
            if unfit := starter.imported(self._plan.settings.timeout):
                return unfit
            if self._plan.cores.workers:
                starter.move(self._plan.cores.workers)
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of files without a starter."""
        return tuple(
            f"{file or 'Saved models'}: each worker imported it afresh, which takes longer: "
            f"{reason}."
            for file, reason in sorted(self._unfit.items())
        )
