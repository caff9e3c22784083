"""``run``: one side measured alone; its numbers, and the run that ``baseline update`` stores."""

from __future__ import annotations

from dataclasses import dataclass

from perfci.commands.compare import (
    Request,
    measured_of,
    remember_cases,
    selected_cases,
    selected_part,
)
from perfci.commands.conclusion import judged_alone, run_of
from perfci.measure.checkout.git import Resolved
from perfci.measure.discovery import not_matching, without_benchmark
from perfci.measure.opening import open_workplace
from perfci.measure.progress import SessionResult
from perfci.measure.workplace import Surroundings, Wanted, Workplace
from perfci.model.case import Case
from perfci.model.report import Report
from perfci.model.run import Run
from perfci.verdict.decision import Measured, build_report, decide_on
from perfci.verdict.shards import Part


def run(
    around: Surroundings, head: Wanted, request: Request, *, benchmarks_of: Resolved | None = None
) -> tuple[Run, Report]:
    """Measure ``head`` alone; return its run, and a report of its numbers without a comparison.

    The benchmark files are its own, or those of ``benchmarks_of``.
    """
    with open_workplace(
        around, (head,), request.log_folder, benchmarks_of=benchmarks_of
    ) as workplace:
        alone = measure_alone("run", workplace, request)
    policy = around.config.policy
    decided = decide_on(alone.measured, judged_alone(alone.result, policy), policy)
    return alone.run, build_report(alone.measured, decided)


@dataclass(frozen=True, slots=True)
class Alone:
    """One side measured alone: which part of the cases, its run, and the rest of its report."""

    part: Part
    result: SessionResult
    run: Run
    measured: Measured


def measure_alone(command: str, workplace: Workplace, request: Request) -> Alone:
    """Measure the selected cases of the workplace's only side, or a shard's part of them."""
    part = selected_part(workplace, request)
    result = workplace.measure(part.cases)
    measured = measured_of(command, workplace, request, result, part)
    run = run_of(result, "head", measured, measured.environment)
    return Alone(part, result, run, measured)


def list_cases(
    around: Surroundings, head: Wanted, selection: str
) -> tuple[tuple[Case, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the cases that would be measured, a line for each file that failed, and notes.

    The notes are on the configuration: how busy the machine is concerns no list.
    """
    with open_workplace(around, (head,)) as workplace:
        remember_cases(around, workplace)
        cases = selected_cases(workplace, Request(selection))
        failed = tuple(f"{f.case}: {f.kind}: {f.message}" for f in workplace.failures(cases))
        notes = (
            *without_benchmark(workplace.found, around.config.policy.thresholds),
            *not_matching(workplace.plan),
        )
        return cases, failed, notes
