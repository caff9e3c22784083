"""Waiting for a plan's reports: submitting what isn't there, looking, cancelling on Ctrl-C."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfci.engine.folder import JobFolder
from perfci.engine.plan import Engine, Plan, State

_FIRST_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Gathered:
    """The reports that are there, by their commands' numbers, and how the commands ended.

    ``ends`` has what is known of it; of one without a report also what it printed last.
    """

    reports: Mapping[int, Path]
    ends: Mapping[int, str]
    cancelled: bool = False


def gather(
    plan: Plan,
    engine: Engine,
    folder: JobFolder,
    *,
    finished: Callable[[Path], bool],
    shown: Callable[[str], None],
    pause_s: float,
) -> Gathered:
    """Have all commands of ``plan`` run that have no report, and wait for them.

    ``finished`` says of a report that was there before whether its command need not run again.
    """
    began = engine.poll(plan)
    again = []
    for number in plan.numbers:
        path = folder.report(plan, number)
        if began[number].phase in {"waiting", "running"} or (path.exists() and finished(path)):
            continue
        path.unlink(missing_ok=True)
        folder.exit_path(number).unlink(missing_ok=True)
        again.append(number)
    cancelled = False
    try:
        if again:
            engine.submit(plan, again)
        states = _wait(plan, engine, folder, shown, pause_s)
    except KeyboardInterrupt:
        cancelled = True
        shown("cancelling; waiting for what was measured so far …")
        engine.cancel(plan)
        states = engine.poll(plan)
    return _gathered(plan, folder, states, cancelled=cancelled)


def _wait(
    plan: Plan,
    engine: Engine,
    folder: JobFolder,
    shown: Callable[[str], None],
    pause_s: float,
) -> Mapping[int, State]:
    """Return where the commands are once none runs and all have had time to show a report."""
    said = ""
    pause = _FIRST_PAUSE_S
    ended: dict[int, float] = {}
    while True:
        states = engine.poll(plan)
        now = time.monotonic()
        there = [one for one in plan.numbers if folder.report(plan, one).exists()]
        for number, state in states.items():
            if state.phase in {"ended", "absent"}:
                ended.setdefault(number, now)
        text = progress_text(states, there)
        if text != said:
            shown(text)
            said = text
        if all(
            number in ended and (number in there or now - ended[number] >= engine.settle_s)
            for number in plan.numbers
        ):
            return states
        time.sleep(pause)
        pause = min(2.0 * pause, pause_s)


def progress_text(states: Mapping[int, State], there: list[int]) -> str:
    """Return how many shards have reported, run and wait, and for what."""
    phases = Counter(state.phase for number, state in states.items() if number not in there)
    parts = [f"{len(there)} of {len(states)} shards have reported"]
    parts += [f"{phases[name]} {name}" for name in ("running", "waiting") if phases[name]]
    if phases["ended"]:
        parts.append(f"{phases['ended']} without a report")
    waits = sorted({state.why for state in states.values() if state.phase == "waiting"} - {""})
    return ", ".join(parts) + (f" ({', '.join(waits)})" if waits else "")


def _end_of(state: State, *, cancelled: bool) -> str:
    if state.phase == "waiting" and state.why:
        return f"it was waiting for {state.why}"
    return state.why or ("cancelled" if cancelled else "it ended")


def _gathered(
    plan: Plan, folder: JobFolder, states: Mapping[int, State], *, cancelled: bool
) -> Gathered:
    reports = {}
    ends = {}
    for number in plan.numbers:
        path = folder.report(plan, number)
        ends[number] = _end_of(states[number], cancelled=cancelled)
        if path.exists():
            reports[number] = path
        elif said := folder.last_line(number):
            ends[number] += f"; it said last: {said}"
    return Gathered(reports, ends, cancelled)
