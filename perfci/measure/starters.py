"""A starter of each side, while a sweep visits the cases of one benchmark file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from perfci.measure.journal import Journal
from perfci.measure.plan import SessionPlan
from perfci.measure.schedule import starting_order
from perfci.measure.starter import Starter
from perfci.record.case import Case


class Starters:
    """Opens starters, and remembers the files whose imports don't allow any."""

    def __init__(self, plan: SessionPlan, journal: Journal, budget_end: float) -> None:
        self._plan = plan
        self._journal = journal
        self._budget_end = budget_end
        self._unfit: dict[str, str] = {}

    @contextmanager
    def of(self, cases: Sequence[Case], sweep: int) -> Iterator[Mapping[str, Starter] | None]:
        """Yield a starter of each side, or None where each worker has to start afresh.

        ``cases`` are of one file. Both sides are started alike: a forked worker beside a fresh
        one would compare the ways to start. Raises BudgetEnded.
        """
        file = cases[0].file
        if not self._plan.quiet.fork or file in self._unfit:
            yield None
            return
        with ExitStack() as stack:
            starters: dict[str, Starter] = {}
            for side in starting_order(self._plan.sides, sweep):  # one after the other
                starter = Starter(
                    self._plan.starter_order(side, cases),
                    self._plan.launch(side),
                    timeout_s=self._plan.settings.timeout,
                    budget_end=self._budget_end,
                )
                stack.callback(starter.close)
                starters[side.name] = starter
                if starter.unfit:
                    self._unfit[file] = starter.unfit
                    self._journal.note(f"{file}: workers start afresh: {starter.unfit}")
                    stack.close()
                    yield None
                    return
            yield starters

    def notes(self) -> tuple[str, ...]:
        """Return what the report should say of files without a starter."""
        return tuple(
            f"{file or 'Saved models'}: each worker imported it afresh, which takes longer: "
            f"{reason}."
            for file, reason in sorted(self._unfit.items())
        )
