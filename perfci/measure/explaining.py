"""Why a case moved: both sides run once more, in fresh processes, under instruments.

Never while anything is measured. Whatever fails here is ``untold``, and no verdict depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

from perfci.errors import OutsideError
from perfci.files import read_regular, write_file
from perfci.instruments import Instrument, Recorded, added, instruments, words
from perfci.instruments.trace import trace_text
from perfci.measure.conversation import BudgetEnded, Worker, WorkerEnded
from perfci.measure.executor import Executor
from perfci.measure.journal import measuring_begins, measuring_ended
from perfci.measure.launch import TreeDeleted, move
from perfci.measure.plan import SessionPlan
from perfci.measure.progress import MOST_LOOKED_INTO, CaseState
from perfci.measure.round import WorkerTask
from perfci.model.case import Case, Failure
from perfci.model.finding import MOST_STACK_S, Difference, Hint, Stack, Why
from perfci.model.report import Comparison
from perfci.verdict.why import changed_lines, ranked, size, with_hunks

EXPLAIN_S = 10.0
"""Time that the instruments of a case may take in ``compare``, besides its own run time."""
_FIRST_PROFILE_S = 60.0
"""What the first profile of a side may take, whatever is left: with none of it there is no why."""
_CALLS = 3
"""Calls that a recording makes of slow work, about."""
_PROFILED = 10.0
"""Factor by which recording lengthens a call, at most."""
_REPEATS = 0.5
"""Of the time that is left an instrument's repeats end in this share: others come after it."""
_WARM_ROUND, _COLD_ROUND = 1_000_000, 0
"""Rounds that never come: with the warm compile caches, and with empty ones."""


@dataclass(slots=True)
class _CaseRecordings:
    """The recordings of one case so far, by instrument and side, and those unavailable."""

    waiting: list[Instrument]
    recorded: dict[str, dict[str, list[Recorded]]] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)

    def give_up(self, chosen: Sequence[Instrument], why: str) -> None:
        for instrument in chosen:
            self.untold[instrument.name] = why
            self.recorded.pop(instrument.name, None)
            self.waiting.remove(instrument)

    def keep(self, instrument: Instrument, recorded: dict[str, list[Recorded]]) -> None:
        self.recorded[instrument.name] = recorded
        self.waiting.remove(instrument)


def explain_case(
    plan: SessionPlan,
    executor: Executor,
    case: Case,
    slug: str,
    moved: Sequence[Comparison],
    *,
    within_s: float,
    keep_trace: Callable[[str, str], None] | None = None,
) -> Why:
    """Return why the case's ``moved`` rows moved, as far as its instruments say.

    They may take ``within_s``, both sides together, beside the case's own run time and what the
    first profile of each side takes beyond that.
    ``keep_trace`` is given each side's name and its Chrome trace, as JSON.

    The two workers start one after the other, and record in turn. Where one ends under an
    instrument, that one is untold, and the others go on in new ones as long as there is time.
    """
    on_demand = {"trace"} if keep_trace else set()
    if plan.settings.hints:
        on_demand.add("hints")
    findings = _CaseRecordings(
        [
            everyone
            for everyone in _everyones().values()
            if everyone.name in on_demand or not everyone.on_demand
        ]
    )
    cold = any(row.metric == "compile_time" for row in moved)
    explaining = _Explainer(plan, executor, case, slug, within_s, cold=cold)
    while findings.waiting and explaining.left_s > 0:
        explaining.attempt(findings)
    over = f"the {within_s:g} s that a case may take were over; {explaining.advice}"
    findings.give_up(tuple(findings.waiting), over)
    if keep_trace:
        _keep_traces(findings, keep_trace)
    return _concluded(plan, case, findings, moved)


def _everyones() -> Mapping[str, Instrument]:
    return {**instruments(), **added()}


def _keep_traces(findings: _CaseRecordings, keep_trace: Callable[[str, str], None]) -> None:
    for side, recorded in findings.recorded.pop("trace", {}).items():
        try:
            keep_trace(side, trace_text(recorded[0]))
        except (ValueError, RecursionError, OSError) as error:  # a full disk changes no verdict
            findings.untold["trace"] = f"on {side}: {error}"


class _Explainer:
    """Pairs of workers, one after the other, and the time that they may take.

    The first pair compiles with an empty cache where the case is ``cold``.
    """

    def __init__(
        self,
        plan: SessionPlan,
        executor: Executor,
        case: Case,
        slug: str,
        within_s: float,
        *,
        cold: bool,
    ) -> None:
        self._plan, self._executor = plan, executor
        self._case, self._slug = case, slug
        self._round = _COLD_ROUND if cold else _WARM_ROUND
        self.left_s = within_s
        self.advice = (
            f"`perfci explain REPORT -k {quote(case.id)} --within {10 * within_s:g}s` takes more"
        )
        self._first = self._no_profile = True

    def attempt(self, findings: _CaseRecordings) -> None:
        """Start both sides and let them record; an instrument or more is done or untold then."""
        chosen = tuple(findings.waiting)
        began = self._executor.now()
        with ExitStack() as stack:
            try:
                workers = self._started(stack, chosen)
            except WorkerEnded as ended:
                self._spent(began)
                early = tuple(instrument for instrument in chosen if instrument.when != "work")
                findings.give_up(early or chosen, _said(ended.failure))
                return
            except (BudgetEnded, TreeDeleted, OSError, OutsideError) as error:
                findings.give_up(chosen, f"it could not be run again: {error or 'no time'}")
                return
            if not self._first:
                self._spent(began)
            self._first, self._round = False, _WARM_ROUND
            call_s = max(seconds for _, seconds in workers)
            # what is there first
            for instrument in sorted(chosen, key=lambda each: each.when == "work"):
                if instrument.when == "work" and self.left_s <= 0:
                    continue
                began = self._executor.now()
                try:
                    self._record(instrument, [worker for worker, _ in workers], call_s, findings)
                except WorkerEnded as ended:
                    findings.give_up((instrument,), self._ended(ended.failure))
                    return
                except _RepeatTimedOut:
                    return
                except BudgetEnded:
                    findings.give_up((instrument,), f"its worker's time was over; {self.advice}")
                    return
                finally:
                    self._spent(began)
            for worker, _ in workers:
                worker.send({"do": "finish"})
                worker.stage = "done"

    def _ended(self, failure: Failure) -> str:
        return f"{_said(failure)}{f'; {self.advice}' if failure.kind == 'timeout' else ''}"

    def _spent(self, since: float) -> None:
        self.left_s -= self._executor.now() - since

    def _started(
        self, stack: ExitStack, chosen: Sequence[Instrument]
    ) -> list[tuple[Worker, float]]:
        """Start both sides; return each warm worker with the time of a call in s.

        The second one starts on the parent's cores, where it has some: nothing of a start is
        compared but the compiler's phases, and it records where the first one does.
        """
        names = tuple(instrument.name for instrument in chosen)
        self._plan.forget_cold_caches(self._slug)
        workers: list[Worker] = []
        for side in self._plan.sides:
            task = self._plan.task(side, self._case, self._round, self._slug, exact=())
            if task.watched:
                stack.callback(task.watched.events.unlink, missing_ok=True)
            cores = self._plan.cores.parent if workers else ()
            task = replace(task, order=replace(task.order, instruments=names))
            workers.append(self._worker(task, cores or task.launch.affinity))
            stack.callback(workers[-1].close)
        started = []
        for worker in workers:
            call_s = worker.field(worker.expect("ready", task.timeout_s), "call_s", float)
            move(worker.pid, task.launch.affinity)
            started.append((worker, call_s))
        return started

    def _worker(self, task: WorkerTask, cores: tuple[int, ...]) -> Worker:
        launch = replace(
            task.launch,
            environment={**task.launch.environment, **task.environment},
            affinity=cores,
        )
        budget_end = self._executor.now() + 4 * task.timeout_s
        return self._executor.start(task.order, launch, budget_end=budget_end)

    def _record(
        self,
        instrument: Instrument,
        workers: Sequence[Worker],
        call_s: float,
        findings: _CaseRecordings,
    ) -> None:
        """Let both sides record in turn, as often as the instrument asks and the time allows."""
        if instrument.when == "work" and len(workers) * _CALLS * call_s > self.left_s:
            long = f"a call takes {call_s:.2g} s, too long to look inside in {self.left_s:.2g} s"
            findings.give_up((instrument,), f"{long}; {self.advice}")
            return
        least_s = max(1.0, _PROFILED * _CALLS * call_s) if instrument.when == "work" else 1.0
        if instrument.when == "work" and self._no_profile:
            least_s = max(least_s, _FIRST_PROFILE_S)
        self._no_profile = self._no_profile and instrument.when != "work"
        recorded: dict[str, list[Recorded]] = {worker.order.side: [] for worker in workers}
        began = self._executor.now()
        end = began + self.left_s
        for number in range(instrument.runs):
            now = self._executor.now()
            took_s = (now - began) / max(1, number)
            if number and now + took_s > began + self.left_s * _REPEATS:
                break
            for worker in workers:
                worker.send({"do": "record", "instrument": instrument.name})
                try:
                    message = worker.expect("record", max(least_s, end - self._executor.now()))
                except WorkerEnded as ended:
                    if not number or ended.failure.kind != "timeout":
                        raise
                    kept = {side: runs[:number] for side, runs in recorded.items()}
                    findings.keep(instrument, kept)
                    raise _RepeatTimedOut from ended
                if why := worker.field(message, "why", str):
                    findings.give_up((instrument,), f"on {worker.order.side}: {why}")
                    return
                recorded[worker.order.side].append(
                    worker.field(message, "recorded", dict[str, Any])
                )
        findings.keep(instrument, recorded)


class _RepeatTimedOut(Exception):
    """A worker ended in a repeat of a recording; those before it are kept."""


def _said(failure: Failure) -> str:
    first = next(iter(failure.message.strip().splitlines()), "")
    return f"{failure.side} failed under it in {failure.stage} ({failure.kind}): {first}"[:500]


# From recordings to differences, and which of them lie on changed lines.


def _concluded(
    plan: SessionPlan, case: Case, findings: _CaseRecordings, moved: Sequence[Comparison]
) -> Why:
    differences: list[Difference] = []
    hints: list[Hint] = []
    stacks: list[Stack] = []
    hinting = plan.settings.hints
    for name, recorded in findings.recorded.items():
        instrument = _everyones()[name]
        try:
            of_one = tuple(
                map(
                    instrument.as_reported,
                    instrument.differences(recorded["base"], recorded["head"]),
                )
            )
            hinted = (
                tuple(map(instrument.as_reported, instrument.hints(recorded["head"])))
                if hinting
                else ()
            )
            stacked = tuple(instrument.stacks(recorded["base"], recorded["head"]))
            _require_sound((*of_one, *hinted), stacked)
        except Exception as error:  # noqa: BLE001 (what a benchmark's process sent may be anything)
            findings.untold[name] = f"what it recorded can't be read ({type(error).__name__})"
            continue
        differences += of_one
        hints += hinted
        stacks += stacked
    changed = {
        file: _changed(plan, file)
        for file in dict.fromkeys(difference.file for difference in differences if difference.file)
    }
    differences = list(with_hunks(differences, changed))
    return Why(case.id, ranked(differences, moved), tuple(hints), findings.untold, tuple(stacks))


def _require_sound(differences: Iterable[Difference | Hint], stacks: Iterable[Stack]) -> None:
    """Raise where something of it could not be shown, or written and read again."""
    for difference in differences:
        words(difference)
        if difference.line < 0 or "\0" in difference.file:
            raise ValueError(f"{difference.file!r} has no line {difference.line}")
    for stack in stacks:
        if not 0.0 <= stack.base + stack.head <= MOST_STACK_S:
            raise ValueError(f"a stack takes {stack.base} and {stack.head} s")


def _changed(plan: SessionPlan, file: str) -> frozenset[int]:
    """Return the lines of head's file that differ from base's; none where it isn't in the tree."""
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


# After a verdict.


@dataclass(frozen=True, slots=True)
class Explanations:
    """Explanations of the cases that moved, and notes on them."""

    why: tuple[Why, ...] = ()
    notes: tuple[str, ...] = ()


def write_trace(folder: Path, slug: str, side: str, text: str) -> None:
    """Write one side's Chrome trace of a case."""
    write_file(folder / f"{slug}.{side}.json", text)


def explain_moved(
    plan: SessionPlan,
    executor: Executor,
    states: Sequence[CaseState],
    rows: Sequence[Comparison],
    step: Callable[[str], None],
    keep_trace: Callable[[str, str, str], None] | None = None,
) -> Explanations:
    """Look into the cases that got worse or better, those that moved most first.

    A case of which nothing can be said has no why. A signal ends this, and nothing else.
    ``keep_trace`` is given each case's slug, a side's name and its Chrome trace.
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
            step(f"looking inside {state.case.id} …")
            of_case = tuple(moved[state.case.id])
            explained.append(
                explain_case(
                    plan,
                    executor,
                    state.case,
                    state.slug,
                    of_case,
                    within_s=EXPLAIN_S,
                    keep_trace=partial(keep_trace, state.slug) if keep_trace else None,
                )
            )
    except KeyboardInterrupt:
        notes.append("Interrupted while it was looked into why cases moved: some have no why.")
    finally:
        measuring_ended()
    return Explanations(
        tuple(why for why in explained if why.differences or why.hints or why.untold), tuple(notes)
    )
