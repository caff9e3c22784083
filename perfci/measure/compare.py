"""``compare``: both sides measured together, decided, reported."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfci.errors import UsageError
from perfci.measure.conclude import Facts, conclude
from perfci.measure.select import select
from perfci.measure.session import SessionResult
from perfci.measure.workplace import Surroundings, Wanted, Workplace, open_workplace
from perfci.measure.written import written_in
from perfci.record.case import Case
from perfci.record.report import Report, Timing


@dataclass(frozen=True, slots=True)
class Request:
    """What a command asks of a session, besides the configuration.

    ``only`` names cases by their ids, besides the user's ``selection``; empty for all.
    """

    selection: str = ""
    only: tuple[str, ...] = ()
    fail_fast: bool = False
    log_folder: Path | None = None


def compare(around: Surroundings, base: Wanted, head: Wanted, request: Request) -> Report:
    """Measure ``base`` and ``head`` together and return the report with its verdict."""
    with open_workplace(around, (base, head), request.log_folder) as workplace:
        cases = selected_cases(workplace, request)
        result = workplace.measure(cases, fail_fast=request.fail_fast)
        removed = removed_cases(workplace, request)
        return conclude(
            cases,
            removed,
            result,
            workplace.failures(cases),
            around.config.policy,
            facts_of("compare", workplace, result),
        )


def selected_cases(workplace: Workplace, request: Request) -> tuple[Case, ...]:
    """Return head's cases that are asked for; UsageError where there are none."""
    selected = workplace.cases(request.selection)
    cases = tuple(case for case in selected if not request.only or case.id in request.only)
    if not cases:
        raise UsageError(
            "nothing-selected",
            f"-k {request.selection!r} selects no case",
            "`perfci list` shows all cases.",
        )
    return cases


def removed_cases(workplace: Workplace, request: Request) -> tuple[str, ...]:
    """Return the benchmarks that base's files have and head's no longer have, by their names.

    Both sides run head's files, so base's own are read and never imported. One that names no
    benchmark stands for itself, by its path, once it is gone. A selection names those it means.
    """
    if request.only:
        return ()
    plan, head = workplace.plan, workplace.found["head"].discovery
    base = next(side for side in plan.sides if side.name == "base")
    before = written_in(base.root, plan.benchmark_files(base.root))
    after = written_in(plan.benchmark_root, plan.benchmark_files(plan.benchmark_root))
    # a name that head writes and doesn't define is broken, or not meant for this machine
    kept = {case.benchmark for case in head.cases}.union(*after.values())
    broken = {failure.case for failure in head.failures}
    gone = {
        name: file
        for file, names in before.items()
        for name in (names or {file} - after.keys())
        if name not in kept and file not in broken
    }
    stand_ins = (Case(name, name, {}, file, 0, "") for name, file in sorted(gone.items()))
    return tuple(case.id for case in select(stand_ins, request.selection))


def facts_of(command: str, workplace: Workplace, result: SessionResult) -> Facts:
    """Return what the report says beside the numbers."""
    sides = {side.name: side.side for side in workplace.plan.sides}
    environments = workplace.environments
    head, base = environments["head"], environments.get("base")
    return Facts(
        command=command,
        created_at=now(),
        base=sides.get("base"),
        head=sides["head"],
        environment=head,
        base_environment=base if base and base.key != head.key else None,
        notes=workplace.notes,
        injected=workplace.config.settings.inject,
        timing=Timing(
            wall_s=workplace.elapsed_s(),
            measured_s=result.measured_s,
            rounds=result.rounds,
        ),
    )


def now() -> str:
    """Return this moment as ISO 8601, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")
