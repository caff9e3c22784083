"""Why a case moved: both sides run once more, in fresh processes, under instruments.

This never runs while anything is measured. An instrument that fails is unavailable, and no verdict
depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

from perfci.errors import OutsideError
from perfci.files import read_regular
from perfci.instruments import Instrument, Recorded, instruments, words
from perfci.measure.plan import SessionPlan, SidePlan
from perfci.measure.process_cleanup import measuring_begins, measuring_ended
from perfci.measure.progress import CaseState
from perfci.measure.workers import BudgetEnded, TreeDeleted, Worker, WorkerEnded, move
from perfci.measure.workplace import Workplace
from perfci.model.case import Failure
from perfci.model.report import Comparison
from perfci.model.why import Difference, Why
from perfci.verdict.why import changed_lines, ranked, size, with_hunks

MOST_LOOKED_INTO = 8
"""Number of moved cases that are looked into."""
EXPLAIN_S = 10.0
"""Time that the instruments of a case may take in ``compare``, besides its own run time."""
_FIRST_PROFILE_S = 60.0
"""Time that a side's first profile may always take: without a profile nothing is explained."""
_CALLS = 3
"""Number of calls that a recording makes of slow work, about."""
_RECORDING_FACTOR = 10.0
"""Factor by which recording lengthens a call, at most."""
_SHARE_OF_REPEATS = 0.5
"""Share of the time left that an instrument's repeats may take. The rest is for later ones."""
_WARM_ROUND, _COLD_ROUND = 1_000_000, 0
"""Numbers of rounds that are never measured, with warm compile caches and with empty ones."""


def explain_case(
    workplace: Workplace,
    state: CaseState,
    moved: Sequence[Comparison],
    *,
    within_s: float,
) -> Why:
    """Return why the case's ``moved`` rows moved, as far as its instruments say.

    The instruments of both sides may take ``within_s`` together. The case's own run time isn't part
    of that, and each side's first profile may take longer.

    The two workers start one after the other, and record in turn. If a worker ends under an
    instrument, that instrument is unavailable. The others go on in new workers while there is time.
    If one side lives at a time, one side's workers record after the other side's.
    """
    cold = any(row.metric == "compile_time" for row in moved)
    sides = workplace.plan.sides
    alternate = workplace.plan.config.settings.residency == "alternate"
    groups = [(side,) for side in sides] if alternate else [sides]
    explainers = [
        _Explainer(workplace, state, group, within_s / len(groups), cold=cold) for group in groups
    ]
    for explainer in explainers:
        while explainer.waiting and explainer.left_s > 0:
            explainer.attempt()
        over = f"the {within_s:g} s that a case may take were over; {explainer.advice}"
        explainer.give_up(tuple(explainer.waiting), over)
    explainer, *others = explainers
    for other in others:
        explainer.join(other)
    return explainer.why(moved)


class _Explainer:
    """Runs a worker of each of ``sides``, again where one ended, and keeps their recordings.

    ``recorded`` is by instrument and side. ``unavailable`` has the reason for each instrument
    without a recording. ``waiting`` are the instruments that are neither. If the case is ``cold``,
    the first workers compile with an empty cache.
    """

    def __init__(
        self,
        workplace: Workplace,
        state: CaseState,
        sides: Sequence[SidePlan],
        within_s: float,
        *,
        cold: bool,
    ) -> None:
        self._plan, self._executor, self._state = workplace.plan, workplace.executor, state
        self._sides = sides
        self._round = _COLD_ROUND if cold else _WARM_ROUND
        self.waiting = [*instruments().values()]
        self.recorded: dict[str, dict[str, list[Recorded]]] = {}
        self.unavailable: dict[str, str] = {}
        self.left_s = within_s
        case = quote(state.case.id)
        self.advice = f"`perfci explain REPORT -k {case} --within {10 * within_s:g}s` takes more"
        self._first = self._no_profile = True

    def give_up(self, chosen: Sequence[Instrument], why: str) -> None:
        """Note why these instruments are unavailable."""
        for instrument in chosen:
            self.unavailable[instrument.name] = why
            self.waiting.remove(instrument)

    def join(self, other: _Explainer) -> None:
        """Add the other side's recordings. Without them, an instrument is unavailable."""
        self.unavailable = {**other.unavailable, **self.unavailable}
        self.recorded = {
            name: {**recorded, **other.recorded[name]}
            for name, recorded in self.recorded.items()
            if name in other.recorded
        }

    def _keep(self, instrument: Instrument, recorded: dict[str, list[Recorded]]) -> None:
        self.recorded[instrument.name] = recorded
        self.waiting.remove(instrument)

    def attempt(self) -> None:
        """Start the sides to record. At least one instrument is then done or given up."""
        chosen = tuple(self.waiting)
        began = self._executor.now()
        with ExitStack() as stack:
            try:
                workers = self._started(stack, chosen)
            except WorkerEnded as ended:
                self._spent(began)
                early = tuple(instrument for instrument in chosen if instrument.when != "work")
                self.give_up(early or chosen, _ending(ended.failure))
                return
            except (BudgetEnded, TreeDeleted, OSError, OutsideError) as error:
                self.give_up(chosen, f"it could not be run again: {error or 'no time'}")
                return
            if not self._first:
                self._spent(began)
            self._first, self._round = False, _WARM_ROUND
            call_s = max(seconds for _, seconds in workers)
            # first the instruments that recorded during the start: their recording is there already
            for instrument in sorted(chosen, key=lambda instrument: instrument.when == "work"):
                if instrument.when == "work" and self.left_s <= 0:
                    continue
                if not self._has_recorded(instrument, [worker for worker, _ in workers], call_s):
                    return
            for worker, _ in workers:
                worker.send({"do": "finish"})
                worker.stage = "done"

    def _has_recorded(
        self, instrument: Instrument, workers: Sequence[Worker], call_s: float
    ) -> bool:
        """Let both sides record. Return whether their workers can go on."""
        began = self._executor.now()
        try:
            self._record(instrument, workers, call_s)
        except WorkerEnded as ended:
            more = f"; {self.advice}" if ended.failure.kind == "timeout" else ""
            self.give_up((instrument,), f"{_ending(ended.failure)}{more}")
            return False
        except _RepeatTimedOut:
            return False
        except BudgetEnded:
            self.give_up((instrument,), f"its worker's time was over; {self.advice}")
            return False
        finally:
            self._spent(began)
        return True

    def _spent(self, since: float) -> None:
        self.left_s -= self._executor.now() - since

    def _started(
        self, stack: ExitStack, chosen: Sequence[Instrument]
    ) -> list[tuple[Worker, float]]:
        """Start both sides. Return each worker, when it is warm, with the time of a call in s.

        The second worker starts on the parent's cores, if the parent has some: of a start only the
        compiler's phases are compared. It is moved to the first one's cores before it records.
        """
        names = tuple(instrument.name for instrument in chosen)
        case, slug = self._state.case, self._state.slug
        self._plan.forget_cold_caches(slug)
        workers: list[Worker] = []
        for side in self._sides:
            task = self._plan.task(side, case, self._round, slug, exact=())
            if task.watched:
                stack.callback(task.watched.record.unlink, missing_ok=True)
            cores = self._plan.cores.parent if workers else ()
            launch = replace(
                task.launch,
                environment={**task.launch.environment, **task.environment},
                affinity=cores or task.launch.affinity,
            )
            budget_end = self._executor.now() + 4 * task.timeout_s
            order = replace(task.order, instruments=names)
            workers.append(self._executor.start(order, launch, budget_end=budget_end))
            stack.callback(workers[-1].close)
        started = []
        for worker in workers:
            call_s = worker.field(worker.expect("ready", task.timeout_s), "call_s", float)
            move(worker.pid, task.launch.affinity)
            started.append((worker, call_s))
        return started

    def _record(self, instrument: Instrument, workers: Sequence[Worker], call_s: float) -> None:
        """Let both sides record in turn, as often as the instrument asks and the time allows."""
        if instrument.when == "work" and len(workers) * _CALLS * call_s > self.left_s:
            long = f"a call takes {call_s:.2g} s, too long to look inside in {self.left_s:.2g} s"
            self.give_up((instrument,), f"{long}; {self.advice}")
            return
        least_s = (
            max(1.0, _RECORDING_FACTOR * _CALLS * call_s) if instrument.when == "work" else 1.0
        )
        if instrument.when == "work" and self._no_profile:
            least_s = max(least_s, _FIRST_PROFILE_S)
        self._no_profile = self._no_profile and instrument.when != "work"
        recorded: dict[str, list[Recorded]] = {worker.order.side: [] for worker in workers}
        began = self._executor.now()
        end = began + self.left_s
        for number in range(instrument.runs):
            now = self._executor.now()
            took_s = (now - began) / max(1, number)
            if number and now + took_s > began + self.left_s * _SHARE_OF_REPEATS:
                break
            for worker in workers:
                worker.send({"do": "record", "instrument": instrument.name})
                try:
                    message = worker.expect("record", max(least_s, end - self._executor.now()))
                except WorkerEnded as ended:
                    if not number or ended.failure.kind != "timeout":
                        raise
                    self._keep(instrument, {side: runs[:number] for side, runs in recorded.items()})
                    raise _RepeatTimedOut from ended
                if why := worker.field(message, "why", str):
                    self.give_up((instrument,), f"on {worker.order.side}: {why}")
                    return
                recorded[worker.order.side].append(
                    worker.field(message, "recorded", dict[str, Any])
                )
        self._keep(instrument, recorded)

    def why(self, moved: Sequence[Comparison]) -> Why:
        """Return what differs, ranked, and which of it lies on changed lines."""
        differences: list[Difference] = []
        for name, recorded in self.recorded.items():
            try:
                found = [*instruments()[name].differences(recorded["base"], recorded["head"])]
                _require_sound(found)
            except Exception as error:  # noqa: BLE001 (what a benchmark's process sent may be anything)
                reason = f"what it recorded can't be read ({type(error).__name__})"
                self.unavailable[name] = reason
                continue
            differences += found
        changed = {
            file: _changed(self._plan, file)
            for file in dict.fromkeys(each.file for each in differences if each.file)
        }
        ordered = ranked(with_hunks(differences, changed), moved)
        return Why(self._state.case.id, ordered, self.unavailable)


class _RepeatTimedOut(Exception):
    """A worker ended in a repeat of a recording. The repeats before it are kept."""


def _ending(failure: Failure) -> str:
    first = next(iter(failure.message.strip().splitlines()), "")
    return f"{failure.side} failed under it in {failure.stage} ({failure.kind}): {first}"[:500]


def _require_sound(differences: Iterable[Difference]) -> None:
    """Raise if part of an explanation could not be shown, or written and read again."""
    for difference in differences:
        words(difference)
        if difference.line < 0 or "\0" in difference.file:
            raise ValueError(f"{difference.file!r} has no line {difference.line}")


def _changed(plan: SessionPlan, file: str) -> frozenset[int]:
    """Return the lines of head's file that differ from base's, if the file is in the tree."""
    base, head = (_text(side.root, file) for side in plan.sides)
    return frozenset() if head is None else changed_lines(base or "", head)


def _text(root: Path, file: str) -> str | None:
    try:  # the name is a stranger's: it may hold a zero byte, or name a pipe or a circle of links
        path = (root / file).resolve()
        if not path.is_relative_to(root.resolve()):
            return None
        return read_regular(path).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):
        return None


def explain_moved(
    workplace: Workplace,
    states: Sequence[CaseState],
    rows: Sequence[Comparison],
) -> tuple[tuple[Why, ...], tuple[str, ...]]:
    """Return why cases got worse or better, those that moved most first, and notes.

    A case about which nothing can be said is left out. A signal ends the explaining, but not
    perfci.
    """
    moved: dict[str, list[Comparison]] = {}
    for row in sorted(rows, key=size, reverse=True):
        if row.status in {"regressed", "improved"} and row.gate != "info":
            moved.setdefault(row.case, []).append(row)
    chosen = list(moved)[:MOST_LOOKED_INTO]
    notes = []
    if len(moved) > MOST_LOOKED_INTO:
        notes.append(
            f"{MOST_LOOKED_INTO} of {len(moved)} cases that moved were looked into, those that "
            "moved most; `perfci explain` looks into the others."
        )
    by_case = {state.case.id: state for state in states if not state.failures}
    explained = []
    try:
        measuring_begins()
        for state in (by_case[case] for case in chosen if case in by_case):
            workplace.shown.step(f"looking inside {state.case.id} …")
            rows_of_case = tuple(moved[state.case.id])
            why = explain_case(workplace, state, rows_of_case, within_s=EXPLAIN_S)
            explained.append(why)
    except KeyboardInterrupt:
        notes.append("Interrupted while it was looked into why cases moved: some have no why.")
    finally:
        measuring_ended()
    explanations = (why for why in explained if why.differences or why.untold)
    return tuple(explanations), tuple(notes)
