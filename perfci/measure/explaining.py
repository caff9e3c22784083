"""Why a case moved: both sides run once more, in fresh processes, under instruments.

This never runs while anything is measured. An instrument that fails is unavailable, and no verdict
depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from shlex import quote
from typing import Any

from perfci.errors import OutsideError
from perfci.finding import Difference, Why
from perfci.instruments import Instrument, Recorded, instruments, words
from perfci.measure.plan import SidePlan
from perfci.measure.process_cleanup import measuring_begins, measuring_ended
from perfci.measure.progress import CaseState
from perfci.measure.workers import BudgetEnded, TreeDeleted, Worker, WorkerEnded
from perfci.measure.workplace import Workplace
from perfci.model.case import Failure
from perfci.model.report import Comparison
from perfci.verdict.policy import worsening
from perfci.verdict.why import ranked, size, with_hunks

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
    of that, and each side's first profile may take longer. Head's worker records after base's.
    """
    cold = any(row.metric == "compile_time" for row in moved)
    base, head = (
        _SideRecorder(workplace, state, side, within_s / 2, cold=cold)
        for side in workplace.plan.sides
    )
    for recorder in (base, head):
        recorder.record_all()
    unavailable = {**head.unavailable, **base.unavailable}
    differences: list[Difference] = []
    for name, instrument in instruments().items():
        if not (name in base.recorded and name in head.recorded):
            continue
        try:
            found = [*instrument.differences(base.recorded[name], head.recorded[name])]
            _require_sound(found)
        except Exception as error:  # noqa: BLE001 (what a benchmark's process sent may be anything)
            unavailable[name] = f"its record can't be read ({type(error).__name__})"
            continue
        differences += found
    changed = workplace.plan.differences.lines_of("head")
    return Why(state.case.id, ranked(with_hunks(differences, changed), moved), unavailable)


class _SideRecorder:
    """Runs a worker of ``side``, again where one ended under an instrument.

    ``recorded`` has each instrument's recordings, ``unavailable`` the reason for each instrument
    without any. ``_waiting`` are the instruments that are in neither. If the case is ``cold``, the
    first worker compiles with an empty cache.
    """

    def __init__(
        self,
        workplace: Workplace,
        state: CaseState,
        side: SidePlan,
        within_s: float,
        *,
        cold: bool,
    ) -> None:
        self._plan, self._executor, self._state = workplace.plan, workplace.executor, state
        self._side = side
        lines = workplace.plan.differences.lines_of(side.name)
        self._changed = {file: tuple(sorted(of)) for file, of in lines.items()}
        self._round = _COLD_ROUND if cold else _WARM_ROUND
        self._waiting = [*instruments().values()]
        self.recorded: dict[str, list[Recorded]] = {}
        self.unavailable: dict[str, str] = {}
        self._left_s = within_s
        case = quote(state.case.id)
        self._advice = f"`perfci explain REPORT -k {case} --within {20 * within_s:g}s` takes more"
        self._no_profile = True

    def record_all(self) -> None:
        """Start workers until each instrument has recorded, is unavailable, or the time is over."""
        while self._waiting and self._left_s > 0:
            self._attempt()
        self._give_up(self._waiting, f"the time that a case may take was over; {self._advice}")

    def _give_up(self, chosen: Sequence[Instrument], why: str) -> None:
        for instrument in tuple(chosen):
            self.unavailable[instrument.name] = why
            self._waiting.remove(instrument)

    def _attempt(self) -> None:
        """Start a worker to record. At least one instrument is then done or given up."""
        # first the instruments that record during the start: their recording is there already
        chosen = sorted(self._waiting, key=lambda instrument: instrument.when == "work")
        with ExitStack() as stack:
            try:
                worker, call_s = self._started(stack, chosen)
            except WorkerEnded as ended:
                early = [instrument for instrument in chosen if instrument.when != "work"]
                self._give_up(early or chosen, _ending(ended.failure))
                return
            except (BudgetEnded, TreeDeleted, OSError, OutsideError) as error:
                self._give_up(chosen, f"it could not be run again: {error or 'no time'}")
                return
            self._round = _WARM_ROUND
            for instrument in chosen:
                if instrument.when == "work" and self._left_s <= 0:
                    continue
                began = self._executor.now()
                try:
                    self._record(instrument, worker, call_s)
                except WorkerEnded as ended:
                    more = f"; {self._advice}" if ended.failure.kind == "timeout" else ""
                    self._give_up((instrument,), f"{_ending(ended.failure)}{more}")
                    return
                except BudgetEnded:
                    self._give_up((instrument,), f"its worker's time was over; {self._advice}")
                    return
                finally:
                    self._left_s -= self._executor.now() - began
            worker.send({"do": "finish"})
            worker.stage = "done"

    def _started(self, stack: ExitStack, chosen: Sequence[Instrument]) -> tuple[Worker, float]:
        """Start a worker. Return it, when it is warm, with the time of a call in s."""
        self._plan.forget_cold_caches(self._state.slug)
        task = self._plan.task(self._side, self._state, self._round, extra=())
        if task.watched:
            stack.callback(task.watched.record.unlink, missing_ok=True)
        worker = self._executor.start(
            replace(
                task.order,
                instruments=tuple(instrument.name for instrument in chosen),
                changed=self._changed,
            ),
            task.launch,
            budget_end=self._executor.now() + 4 * task.timeout_s,
        )
        stack.callback(worker.close)
        return worker, worker.field(worker.expect("ready", task.timeout_s), "call_s", float)

    def _record(self, instrument: Instrument, worker: Worker, call_s: float) -> None:
        """Let the worker record, as often as the instrument asks and the time allows."""
        least_s = 1.0
        if instrument.when == "work":
            if _CALLS * call_s > self._left_s:
                long = f"a call takes {call_s:.2g} s, too long for the {self._left_s:.2g} s left"
                self._give_up((instrument,), f"{long}; {self._advice}")
                return
            first_s = _FIRST_PROFILE_S if self._no_profile else 0.0
            least_s = max(least_s, first_s, _RECORDING_FACTOR * _CALLS * call_s)
            self._no_profile = False
        runs: list[Recorded] = []
        began = self._executor.now()
        for number in range(instrument.runs):
            took_s = self._executor.now() - began
            if number and took_s * (1 + 1 / number) > self._left_s * _SHARE_OF_REPEATS:
                break
            worker.send({"do": "record", "instrument": instrument.name})
            message = worker.expect("record", max(least_s, self._left_s - took_s))
            if why := worker.field(message, "why", str):
                self._give_up((instrument,), f"on {worker.order.side}: {why}")
                return
            runs.append(worker.field(message, "recorded", dict[str, Any]))
        self.recorded[instrument.name] = runs
        self._waiting.remove(instrument)


def _ending(failure: Failure) -> str:
    first = next(iter(failure.message.strip().splitlines()), "")
    return f"{failure.side} failed under it in {failure.stage} ({failure.kind}): {first}"[:500]


def _require_sound(differences: Iterable[Difference]) -> None:
    """Raise if part of an explanation could not be shown, or written and read again."""
    for difference in differences:
        words(difference)
        if difference.line < 0 or "\0" in difference.file:
            raise ValueError(f"line {difference.line} is beyond the end of {difference.file!r}")


def _is_worth_a_why(row: Comparison) -> bool:
    """Say whether a row moved, or is undecided and worse: by its threshold or, surely, by half."""
    if row.status == "inconclusive" and row.gate == "fail":
        worse = worsening(row)
        return worse.change >= worse.threshold / (2.0 if worse.lo > 0.0 else 1.0)
    return row.status in {"regressed", "improved"} and row.gate != "info"


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
        if _is_worth_a_why(row):
            moved.setdefault(row.case, []).append(row)
    chosen = list(moved)[:MOST_LOOKED_INTO]
    notes = []
    if len(moved) > MOST_LOOKED_INTO:
        notes.append(
            f"{MOST_LOOKED_INTO} of {len(moved)} cases that moved were explained, those that moved "
            "most; `perfci explain` explains the others."
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
        notes.append("Interrupted while explaining: some changed cases have no explanation.")
    finally:
        measuring_ended()
    explanations = (why for why in explained if why.differences or why.untold)
    return tuple(explanations), tuple(notes)
