"""Whether all cases of a file are the same code on both sides, seen before any of them is measured.

One worker a side runs them all, both workers beside each other. What that opened counts for each
case: where nothing of it differs between the sides, no case can have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from perfci.model.case import Case
from perfci.session.conversation import Worker, WorkerEnded
from perfci.session.executor import Executor
from perfci.session.plan import SessionPlan
from perfci.session.provenance.attribution import Provenance
from perfci.session.provenance.openings import Openings
from perfci.session.provenance.tally import Tally
from perfci.session.slot import Task

LEAST_CASES = 4
"""Fewer take no longer one by one, and each then has its numbers."""


def used_by_all(ran: Iterable[Provenance]) -> frozenset[str]:
    """Return the files that both sides used: head's benchmarks."""
    used = [frozenset(one.used) for one in ran]
    return frozenset.intersection(*used) if used else frozenset()


@dataclass(frozen=True, slots=True)
class SameCode:
    """Finds the cases of which nothing differs; what they ran goes to the ``tally``."""

    plan: SessionPlan
    executor: Executor
    openings: Openings
    tally: Tally
    budget_end: float

    def of(self, cases: Sequence[Case]) -> frozenset[str]:
        """Return those of ``cases`` that are the same code, by id: all of a file's, or none.

        None, too, where anything goes wrong: measured one by one, each case can say what.
        Raises BudgetEnded and TreeDeleted.
        """
        by_file: dict[str, list[Case]] = {}
        if self.openings.complete and not self._imports_what_differs():
            for case in cases:
                by_file.setdefault(case.file, []).append(case)
        files = [each for each in by_file.values() if len(each) >= LEAST_CASES]
        return frozenset(case.id for each in files if self._are(each) for case in each)

    def _imports_what_differs(self) -> bool:
        """Say whether a side's benchmarks import a file that differs: their cases have changed."""
        differing = self.plan.differing or frozenset()
        discovered = self.plan.discovered.values()
        return any(not differing.isdisjoint(one.modules.values()) for one in discovered)

    def _are(self, cases: Sequence[Case]) -> bool:
        ran = self._run(cases)
        opened = self.openings.taken()
        names = [case.id for case in cases]
        for side, one in ran.items():
            self.tally.add_together(names, side, one)
        same = not opened - used_by_all(ran.values()) and self.openings.complete
        if ran and same and self.tally.is_same(names[0]):
            return True
        self.tally.forget(names)
        return False

    def _run(self, cases: Sequence[Case]) -> dict[str, Provenance]:
        """Run ``cases`` on both sides; return what each side ran, or nothing."""
        tasks = {side.name: self.plan.task_of_many(side, cases) for side in self.plan.sides}
        with ExitStack() as stack:
            for task in tasks.values():
                if task.watched:
                    stack.callback(task.watched.events.unlink, missing_ok=True)
            if not self._end_well(list(tasks.values())):
                return {}
            ran = {name: one.watched.provenance() for name, one in tasks.items() if one.watched}
        known = len(ran) == len(tasks) and all(
            one.watched and not one.wrong for one in ran.values()
        )
        return ran if known else {}

    def _end_well(self, tasks: Sequence[Task]) -> bool:
        """Run a worker for each task, all at once; say whether all got to their end, and left none.

        The second one has the parent's cores, which have nothing else to do.
        """
        workers: list[Worker] = []
        left: list[int] = []
        with ExitStack() as stack:
            for task in tasks:
                environment = {**task.launch.environment, **task.environment}
                launch = replace(task.launch, environment=environment)
                if workers and self.plan.cores.parent:
                    launch = replace(launch, affinity=self.plan.cores.parent)
                worker = self.executor.start(task.order, launch, budget_end=self.budget_end)
                stack.callback(partial(_close, worker, left))
                workers.append(worker)
            try:
                for worker, task in zip(workers, tasks, strict=True):
                    worker.expect("ran", task.timeout_s)
                    worker.stage = "done"
            except WorkerEnded:
                return False
        return not any(left)


def _close(worker: Worker, left: list[int]) -> None:
    left.append(worker.close())
