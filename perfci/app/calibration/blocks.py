"""Blocks of identical sides: a session in a workplace with other settings, or less quiet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from perfci.machine.quiet import CorePlan
from perfci.model.case import Case, Failure
from perfci.model.settings import MeasureSettings, Quiet
from perfci.session.plan import SessionPlan
from perfci.session.state import Progress
from perfci.session.workplace import Workplace
from perfci.verdict.calibration.noise import Pairs


@dataclass(frozen=True, slots=True)
class Block:
    """What one block of rounds gave; ``round_s`` has the time of each round by case."""

    pairs: tuple[Pairs, ...]
    round_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    rounds: int = 0
    ended: str = "done"
    notes: tuple[str, ...] = ()


Measure = Callable[[str, Sequence[Case], MeasureSettings, Quiet, float], Block]
"""Measures cases with such settings until such a time; the text says what for."""


def in_workplace(workplace: Workplace, end: float) -> Measure:
    """Return what measures blocks in ``workplace``; all of them end at ``end`` at the latest."""
    done = 0

    def measure(
        what: str,
        cases: Sequence[Case],
        settings: MeasureSettings,
        quiet: Quiet,
        block_end: float,
    ) -> Block:
        nonlocal done
        watch = _Watch(workplace, what, done, end)
        plan = workplace.plan
        cores = plan.cores if quiet.pin else CorePlan((), (), plan.cores.threads)
        changed = replace(
            workplace,
            plan=replace(plan, settings=settings, quiet=quiet, cores=cores),
            config=replace(workplace.config, settings=settings, quiet=quiet),
            budget_end=min(block_end, end),
            shown=replace(workplace.shown, progress=watch),
        )
        with _where_it_may_run(plan, pinned=quiet.pin):
            result = changed.measure(cases)
        done += result.rounds
        return Block(
            pairs=tuple(
                Pairs(state.case, tuple(state.outputs["base"]), tuple(state.outputs["head"]))
                for state in result.states
            ),
            round_s=watch.finished(),
            failures=tuple(failure for state in result.states for failure in state.failures),
            rounds=result.rounds,
            ended=result.ended,
            notes=tuple(note for note in result.notes if result.ended in {"done", "outside"}),
        )

    return measure


class _Watch:
    """Shows progress in the whole calibration's terms, and notes how long each round took."""

    def __init__(self, workplace: Workplace, what: str, done: int, end: float) -> None:
        self._shown = workplace.shown
        self._clock = workplace.executor.now
        self._what = what
        self._done = done
        self._started = workplace.started
        self._end = end
        self._rounds: dict[str, list[float]] = {}
        self._open: tuple[str, float] | None = None

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        self._close(now)
        self._open = (progress.case, now)
        self._shown.progress(
            replace(
                progress,
                case=f"{self._what}: {progress.case}",
                done=self._done + progress.done,
                planned=self._done + progress.planned,
                elapsed_s=now - self._started,
                left_s=max(0.0, self._end - now),
                provisional=(),
            )
        )

    def finished(self) -> dict[str, tuple[float, ...]]:
        self._close(self._clock())
        return {case: tuple(times) for case, times in self._rounds.items()}

    def _close(self, now: float) -> None:
        if self._open is not None:
            case, began = self._open
            self._rounds.setdefault(case, []).append(now - began)
            self._open = None


@contextmanager
def _where_it_may_run(plan: SessionPlan, *, pinned: bool) -> Iterator[None]:
    """Workers that aren't pinned inherit this process's cores: for them it leaves its corner."""
    before = os.sched_getaffinity(0)
    if not pinned and plan.cores.workers:
        os.sched_setaffinity(0, {*plan.cores.workers, *plan.cores.parent})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
