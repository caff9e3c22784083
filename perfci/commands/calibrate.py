"""``calibrate``: a commit measured against itself, and what that shows of this machine.

The first part of the time goes to identical sides. Then the quiet settings are switched off, one
after the other. A second block of identical sides follows, so that the machine's disturbances over
the hours fall on both parts alike. The rest of the time tests the promise with a slow-down in head.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.calibrate import Calibration, DefaultSession, TimeSpent
from perfci.calibrate.promise import PROMISED_METRIC, suggest
from perfci.commands.calibrate_parts import SAME_END, CalibrationParts, in_workplace
from perfci.commands.compare import MeasureOptions, now, selected_cases, within
from perfci.config.loading import OWN_FILE, PROJECT_FILE, Config
from perfci.measure.workplace import open_workplace
from perfci.model.case import Case, Failure
from perfci.model.run import Environment, Side
from perfci.units import format_duration, format_share
from perfci.verdict.shards import whole_by_part
from perfci.version import VERSION

if TYPE_CHECKING:
    from perfci.commands.project import Project


@dataclass(frozen=True, slots=True)
class CalibrationFacts:
    """Facts of a calibration besides its numbers. Times in s."""

    created_at: str
    side: Side
    environment: Environment
    wall_s: float
    budget_s: float
    configuration: str = ""
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()


def calibrate(
    project: Project,
    rev: str,
    options: MeasureOptions,
    budget_s: float,
    config_path: Path | None = None,
) -> Calibration:
    """Measure ``rev`` against itself for ``budget_s`` and return what this machine sees.

    ``config_path`` is the configuration's file where it is not one of the project's own. Promises
    are made for a session with the configuration's own budget and rounds.
    """
    project.check_outputs(options.outputs)
    # lexists: an entry that is no file is reported when it is read
    existing = (name for name in (OWN_FILE, PROJECT_FILE) if os.path.lexists(project.root / name))
    name = config_path.name if config_path else next(existing, OWN_FILE)
    head = project.side("head", rev, options.python)
    context = project.session_context()
    sides = (replace(head, name="base"), head)
    with open_workplace(within(context, budget_s), sides, options.log_folder) as workplace:
        cases = selected_cases(workplace, options)
        parts = CalibrationParts(
            measure=in_workplace(workplace, workplace.budget_end),
            config=context.config,
            cores=workplace.plan.cores,
            clock=context.executor.now,
            end=workplace.budget_end,
            scale=whole_by_part(workplace.cases(""), cases),  # the gate measures all cases
        )
        known = {case.id for case in workplace.discoveries["base"].discovery.cases}
        parts.run([case for case in cases if not case.skip and case.id in known])
        facts = CalibrationFacts(
            created_at=now(),
            side=next(side.side for side in workplace.plan.sides if side.name == "head"),
            environment=workplace.environments["head"],
            wall_s=workplace.elapsed_s(),
            budget_s=budget_s,
            configuration=name,
            failures=workplace.failures(cases),
            notes=workplace.notes,
        )
        return concluded(parts, cases, facts)


def concluded(
    results: CalibrationParts, cases: Sequence[Case], facts: CalibrationFacts
) -> Calibration:
    """Return the calibration: what was found, what to change, and what can't be relied on."""
    config, seen = results.config, results.calibrated.seen
    session = DefaultSession(
        rounds=config.settings.rounds,
        max_rounds=config.settings.max_rounds,
        budget_s=config.settings.budget,
        alpha=config.policy.alpha,
        comparisons=results.calibrated.comparisons,
    )
    own = {(case.benchmark, metric) for case in cases for metric in case.thresholds}
    untrusted = tuple(_untrusted_reasons(results))
    return Calibration(
        perfci_version=VERSION,
        created_at=facts.created_at,
        side=facts.side,
        environment=facts.environment,
        session=session,
        spent=TimeSpent(
            wall_s=facts.wall_s,
            budget_s=facts.budget_s,
            same_s=results.part_s.get("same", 0.0),
            settings_s=results.part_s.get("settings", 0.0),
            promise_s=results.part_s.get("promise", 0.0),
            rounds=results.rounds,
        ),
        seen=seen,
        false_alarms=results.calibrated.false_alarms,
        settings=results.settings,
        promise=results.promise,
        suggestions=()
        if untrusted
        else suggest(seen, session, config.policy, results.sweep_s, own=frozenset(own)),
        configuration=facts.configuration,
        failures=(*facts.failures, *results.failures),
        notes=(*facts.notes, *results.notes, *_cut(results, cases, config)),
        untrusted=untrusted,
    )


def _cut(results: CalibrationParts, cases: Sequence[Case], config: Config) -> list[str]:
    """Return notes on what the calibration did not look at, and why."""
    notes = []
    if results.session.most < config.settings.max_rounds:
        budget, most = format_duration(config.settings.budget), results.session.most
        notes.append(f"The budget of {budget} allows {most} rounds a case, not `max_rounds`.")
    if any(row.metric == PROMISED_METRIC and row.modes for row in results.calibrated.seen):
        notes.append("No promise is tested, and no threshold suggested, where there are two modes.")
    latency = [row for row in results.calibrated.seen if row.metric == PROMISED_METRIC]
    known = {row.case for row in latency if row.spread is not None}
    known |= {failure.case for failure in results.failures}
    few = [case.id for case in cases if not case.skip and case.id not in known]
    if few:
        names = ", ".join(few)
        notes.append(
            f"Too few rounds to know the spread: {names}. Raise --budget or choose with -k."
        )
    passed = {
        row.metric
        for row in results.calibrated.seen
        if row.gate == "fail"
        and row.sees_threshold is False
        and config.policy.undecided(row.metric) == "pass"
    }
    if passed:
        names = ", ".join(sorted(passed))
        notes.append(
            f"An undecided {names} costs no verdict, so no rounds are suggested for it: a change "
            "too small to be seen passes."
        )
    if results.promise.left_out and results.promise.status != "not_checked":
        names = ", ".join(results.promise.left_out)
        notes.append(f"The promise was not tested, for want of time, on {names}.")
    return notes


def _untrusted_reasons(results: CalibrationParts) -> list[str]:
    """Return the reasons not to rely on this calibration, or nothing."""
    reasons = []
    if results.interrupted:
        reasons.append("interrupted before the end")
    if not any(row.detectable is not None for row in results.calibrated.seen):
        reasons.append(
            "nothing was measured often enough to know a spread; raise --budget: "
            f"identical sides get the first {format_share(SAME_END)} of the time"
        )
    if results.promise.status == "not_kept":
        promised = format_share(results.promise.promised)
        reasons.append(f"the promise to find {promised} was not kept: {results.promise.reason}")
    alarms = [row for row in results.calibrated.seen if row.false_alarm and row.gate == "fail"]
    if alarms:
        names = ", ".join(f"{row.case} {row.metric}" for row in alarms)
        reasons.append(f"identical sides were called different: {names}")
    return reasons
