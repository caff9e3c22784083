"""``calibrate``: a commit measured against itself in one session, and what that shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from perfci.calibrate import Calibration, SeenMetric, SessionRounds, calibrate, most_disturbing
from perfci.commands.compare import MeasureOptions, now, selected_cases, within
from perfci.config.keys import MeasureSettings
from perfci.measure.progress import CaseState, SessionResult
from perfci.measure.session import SessionOptions, measure_cases
from perfci.measure.workplace import open_workplace
from perfci.verdict.shards import whole_by_part
from perfci.version import VERSION

if TYPE_CHECKING:
    from perfci.commands.project import Project


def calibrated(project: Project, rev: str, options: MeasureOptions, budget_s: float) -> Calibration:
    """Measure ``rev`` against itself for ``budget_s`` and return what this machine sees.

    Each case gets the configuration's most rounds, if there is time for them. The result is the
    changes that a session with the configuration's own budget and rounds could detect.
    """
    project.check_outputs(options.outputs)
    head = project.side("head", rev)
    context = project.session_context()
    sides = (replace(head, name="base"), head)
    settings = context.config.settings
    with open_workplace(within(context, budget_s), sides, options.log_folder) as workplace:
        cases = selected_cases(workplace, options)
        # the gate tests ``scale`` times as many comparisons as these cases have
        scale = whole_by_part(workplace.cases(""), cases)
        session = SessionOptions(all_rounds=True, scale=scale)
        result = measure_cases(workplace, cases, session)
        sound = [state for state in result.states if state.rounds and not state.failures]
        rounds = session_rounds(sound, settings)
        policy = context.config.policy
        compared = [row for state in sound for row in state.compared(policy)]
        seen, comparisons = calibrate(compared, policy, rounds, scale)
        return Calibration(
            perfci_version=VERSION,
            created_at=now(),
            side=next(side.side for side in workplace.plan.sides if side.name == "head"),
            environment=workplace.environments["head"],
            session=rounds,
            comparisons=comparisons,
            wall_s=workplace.elapsed_s(),
            rounds=result.rounds,
            seen=seen,
            disturbance=most_disturbing(
                output for state in sound for side in state.outputs.values() for output in side
            ),
            failures=(
                *workplace.failures(cases),
                *result.failures,
                *(failure for state in result.states for failure in state.failures),
            ),
            notes=(*workplace.notes, *result.notes),
            untrusted=tuple(untrusted_reasons(result, seen)),
        )


def session_rounds(measured: Sequence[CaseState], settings: MeasureSettings) -> SessionRounds:
    """Return the rounds of a usual session, which its budget may limit."""
    round_of_all_s = sum(state.wall_s / state.rounds for state in measured)
    affordable = int(settings.budget / round_of_all_s) if round_of_all_s else settings.max_rounds
    return SessionRounds(
        settings.rounds, max(settings.rounds, min(settings.max_rounds, affordable))
    )


def untrusted_reasons(result: SessionResult, seen: Sequence[SeenMetric]) -> Iterator[str]:
    """Return the reasons not to rely on a calibration, or nothing."""
    if result.cut_short:
        yield "it ended early"
    if not any(row.detectable is not None for row in seen):
        yield "too few rounds to estimate a spread; raise --budget"
    if alarms := [row for row in seen if row.false_alarm]:
        names = ", ".join(f"{row.case} {row.metric}" for row in alarms)
        yield f"identical sides were called different: {names}"
