"""``compare``: both sides measured together, decided, reported."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfci.errors import UsageError
from perfci.measure.conclude import Facts, conclude
from perfci.measure.session import SessionResult
from perfci.measure.workplace import Surroundings, Wanted, Workplace, open_workplace
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
        removed = removed_cases(workplace)
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


def removed_cases(workplace: Workplace) -> tuple[str, ...]:
    """Return the benchmark files that base has and head no longer has, as their paths.

    Both sides run head's benchmark files, so a removed benchmark is seen by its file only;
    within a file that stayed, git's own diff shows it.
    """
    plan = workplace.plan
    base = next(side for side in plan.sides if side.name == "base")
    kept = {
        Path(p).relative_to(plan.benchmark_root) for p in plan.benchmark_files(plan.benchmark_root)
    }
    had = {Path(p).relative_to(base.root) for p in plan.benchmark_files(base.root)}
    return tuple(sorted(path.as_posix() for path in had - kept))


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
