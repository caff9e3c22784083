"""Sessions as an estimate of the time left sees them: written down once, and looked at again.

Before every round: what had passed, what was said, and the workers' outputs since. So two estimates
are compared on the same sessions.
"""

from __future__ import annotations

import json
import lzma
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from perfci.measure.budget import RemainingTime
from perfci.measure.progress import CaseNeeds, CaseState, SessionResult, case_states
from perfci.measure.session import Session
from perfci.metrics import METRICS
from perfci.model.case import Case, Failure
from perfci.model.codec import from_plain, to_plain
from perfci.model.measuring import MeasureSettings, WorkerOutput
from perfci.verdict.policy import Policy

Look = tuple[float, float, float]
"""When (a share of the session), what was said then, and what was true; in s."""
_OF_STATE = ("rounds", "first_round_s", "longest_round_s", "wall_s", "same_code")
_COMPILED = "captured_calls"
"""What ``CaseState.compiled`` asks for."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A session: when its process began and had ended, in s, and what it wrote down."""

    name: str
    began: float
    ended: float
    lines: Sequence[dict[str, Any]]

    def at(self, line: dict[str, Any]) -> float:
        """Return when a line was written, as a share of the session."""
        return float((line["at"] - self.began) / (self.ended - self.began))


def keep(file: TextIO) -> None:
    """Let this process write down each estimate that it makes from now on, and what it is of."""
    made, measured = RemainingTime.seconds, Session.measure
    seen: dict[str, int] = {}

    def seconds(
        one: RemainingTime,
        states: Sequence[CaseState],
        family: int,
        elapsed_s: float,
        budget_s: float,
    ) -> float | None:
        said = made(one, states, family, elapsed_s, budget_s)
        line: dict[str, Any] = {
            "at": time.time(), "elapsed_s": elapsed_s, "budget_s": budget_s, "family": family,
            "said": said, "looks": one._looks,
        }  # fmt: skip
        if not seen:
            line["settings"] = to_plain(one._needs.settings)
            line["cases"] = [to_plain(state.case) for state in states]
        line["states"] = changed(states)
        write_line(line)
        return said

    def changed(states: Sequence[CaseState]) -> dict[str, Any]:
        found = {}
        for state in states:
            if seen.get(state.case.id) != state.rounds:
                found[state.case.id] = _of_state(state, seen.get(state.case.id, 0))
                seen[state.case.id] = state.rounds
        return found

    def write_line(line: dict[str, Any]) -> None:
        file.write(json.dumps(line) + "\n")
        file.flush()

    def measure(one: Session, *arguments: Any) -> SessionResult:
        result = measured(one, *arguments)
        write_line({"at": time.time(), "states": changed(result.states)})
        return result

    RemainingTime.seconds = seconds  # type: ignore[assignment, method-assign]
    Session.measure = measure  # type: ignore[assignment, method-assign]


def _of_state(state: CaseState, known: int) -> dict[str, Any]:
    return {
        **{name: getattr(state, name) for name in _OF_STATE},
        "failures": len(state.failures),
        "outputs": {
            side: [_plain(one) for one in outputs if one.round > known]
            for side, outputs in state.outputs.items()
        },
    }


def _plain(output: WorkerOutput) -> dict[str, Any]:
    """Return what an estimate needs of it."""
    values = {
        name: value
        for name, value in output.values.items()
        if name == _COMPILED or (name in METRICS and METRICS[name].gate != "info")
    }
    bare = WorkerOutput(
        output.case, output.side, output.round, values, output.samples,
        ancestor=output.ancestor,
        beside={name: log for name, log in output.beside.items() if name in values},
    )  # fmt: skip
    plain = to_plain(bare)
    empty: tuple[object, ...] = ({}, [], "")
    return {name: value for name, value in plain.items() if value not in empty}


def looks(kept: Kept) -> Iterator[Look]:
    """Yield what was said."""
    for line in kept.lines:
        if line.get("said") is not None:
            yield kept.at(line), line["said"], kept.ended - line["at"]


def again(kept: Kept) -> Iterator[Look]:
    """Yield what the estimate as it is now says of the same moments."""
    first = kept.lines[0]
    cases = tuple(from_plain(one, Case) for one in first["cases"])
    settings = from_plain(first["settings"], MeasureSettings)
    remaining = RemainingTime(CaseNeeds(settings, Policy()), looks=first["looks"])
    states = {state.case.id: state for state in case_states(cases, ["base", "head"])}
    for line in kept.lines:
        for name, of_state in line["states"].items():
            _bring_up(states[name], of_state)
        if "elapsed_s" in line:
            if not any(state.rounds for state in states.values()):
                remaining.began(line["elapsed_s"])
            said = remaining.seconds(
                list(states.values()), line["family"], line["elapsed_s"], line["budget_s"]
            )
            if said is not None:
                yield kept.at(line), said, kept.ended - line["at"]


def _bring_up(state: CaseState, of_state: dict[str, Any]) -> None:
    more = of_state["rounds"] - state.rounds
    if more:  # mostly one
        state.took_s += [(of_state["wall_s"] - state.wall_s) / more] * more
    for name in _OF_STATE:
        setattr(state, name, of_state[name])
    for side, outputs in of_state["outputs"].items():
        state.outputs[side] += [from_plain(one, WorkerOutput) for one in outputs]
    missing = of_state["failures"] - len(state.failures)
    state.failures += [Failure(state.case.id, "head", "", "kept", "")] * missing


def row(kept: Kept, found: Iterable[Look]) -> str:
    """Return a row of the table: the second half's estimates, as shares of the truth."""
    half = [said / true for at, said, true in found if at >= 0.5]
    near = sum(abs(share - 1.0) <= 0.25 for share in half)
    start = f"| {kept.name} | {kept.ended - kept.began:.0f} s | {len(half)} |"
    if not half:
        return f"{start} | | |"
    middle = statistics.median(half)
    return f"{start} {near} | {middle:.2f} | {min(half):.2f} to {max(half):.2f} |"


def write(kept: Kept, folder: Path) -> None:
    """Write a session to a folder, under its name and when it began."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{kept.name.replace(', ', '-').replace(' ', '-')}-{kept.began:.0f}.json.xz"
    with lzma.open(folder / name, "wt", encoding="utf-8", preset=9) as file:
        json.dump(asdict(kept), file)


def opened(path: Path) -> Kept:
    """Return a session that was kept."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return Kept(**json.load(file))
