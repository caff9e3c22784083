"""``run``: one side measured alone; its numbers, and the run that ``baseline update`` stores."""

from __future__ import annotations

from perfci.app.compare import Request, facts_of, selected_cases, selected_part
from perfci.app.concluding import alone, run_of
from perfci.checkout.repository import Resolved
from perfci.model.case import Case
from perfci.model.report import Report
from perfci.model.run import Run
from perfci.session.discovering import not_matching, without_benchmark
from perfci.session.session import SessionResult
from perfci.session.workplace import Surroundings, Wanted, Workplace, open_workplace
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
        part, result, measured = measure_alone(workplace, request)
        report = alone(
            part.cases,
            result,
            workplace.failures(part.cases),
            around.config.policy,
            facts_of("run", workplace, request, result, part),
        )
        return measured, report


def measure_alone(workplace: Workplace, request: Request) -> tuple[Part, SessionResult, Run]:
    """Measure the selected cases of the workplace's only side, or a shard's part of them."""
    part = selected_part(workplace, request)
    result = workplace.measure(part.cases)
    facts = facts_of("run", workplace, request, result, part)
    measured = run_of(result, "head", facts.head, facts.environment, facts.created_at)
    return part, result, measured


def list_cases(
    around: Surroundings, head: Wanted, selection: str
) -> tuple[tuple[Case, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the cases that would be measured, a line for each file that failed, and notes.

    The notes are on the configuration: how busy the machine is concerns no list.
    """
    with open_workplace(around, (head,)) as workplace:
        cases = selected_cases(workplace, Request(selection))
        failed = tuple(f"{f.case}: {f.kind}: {f.message}" for f in workplace.failures(cases))
        notes = (
            *without_benchmark(workplace.found, around.config.policy.thresholds),
            *not_matching(workplace.plan),
        )
        return cases, failed, notes
