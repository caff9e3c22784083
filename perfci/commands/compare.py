"""``compare`` and ``run``: revisions measured, in pairs or alone, up to a decided report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs

from perfci.commands.run_to_report import (
    accepting,
    advised,
    conclude,
    rows_alone,
    run_of,
    with_session,
)
from perfci.config.keys import MeasureSettings
from perfci.config.loading import load_config
from perfci.errors import UnfitCommit, UsageError
from perfci.files import require_writable
from perfci.measure.checkout.git import ResolvedRev
from perfci.measure.discovery import threshold_notes, unmatched_file_notes
from perfci.measure.explaining import explain_moved
from perfci.measure.kept_bursts import BurstKeeper
from perfci.measure.plan import files_in
from perfci.measure.progress import SessionResult
from perfci.measure.selection import DecoratorLiterals, by_name, select, written_in
from perfci.measure.session import SessionOptions, measure_cases
from perfci.measure.workplace import RequestedSide, SessionContext, Workplace, open_workplace
from perfci.model.case import Case, Failure
from perfci.model.report import Report, Timing
from perfci.model.run import Run
from perfci.outputs import Announce, silent
from perfci.units import counted, first_of, format_duration
from perfci.verdict.decision import UNDECIDED, with_verdict
from perfci.verdict.shards import Shard, ShardCases, part_of
from perfci.version import VERSION


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """The options of a measurement, besides its revisions and the configuration.

    ``selection`` is the expression of ``-k``. ``shard`` is a part of the selected cases, split by
    ``durations`` in s by case. ``everything`` measures cases that ran no changed file like any
    other case. ``record`` adds the runs to the history, and implies ``everything``. ``outputs``
    are files that the caller writes. If they can't be written, that is an error before measuring.
    ``keep_bursts`` is a folder for all rounds' bursts; each case then gets all of its rounds.
    ``same`` allows both sides to be one commit.

    A command sets the other fields. ``why`` looks into cases that moved. ``only`` has the ids of
     the cases to measure. Empty means all. ``command`` goes into the report. Both sides run the
     benchmark files of ``benchmarks_of``, or head's.
    """

    selection: str = ""
    base_python: str | None = None
    head_python: str | None = None
    shard: Shard | None = None
    record: bool = False
    outputs: Mapping[str, Path] = field(default_factory=dict)
    log_folder: Path | None = None
    everything: bool = False
    same: bool = False
    keep_bursts: Path | None = None
    why: bool = False
    only: tuple[str, ...] = ()
    command: str = "compare"
    benchmarks_of: ResolvedRev | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether all cases are meant."""
        return not (self.selection or self.only or self.shard)


def compare(
    context: SessionContext,
    base: RequestedSide,
    head: RequestedSide,
    options: MeasureOptions,
    announce: Announce = silent,
) -> tuple[tuple[Run, Run], Report]:
    """Measure both sides in pairs and return their runs (base's, head's), and the report.

    ``announce`` takes a line on what will be measured and within which time, before it begins.
    """
    with open_workplace(
        context, (base, head), options.log_folder, benchmarks_of=options.benchmarks_of
    ) as workplace:
        part = selected_part(workplace, options)
        settings = context.config.settings
        if options.keep_bursts:  # all rounds are kept
            settings = replace(settings, rounds=settings.max_rounds)
        announce(_announcement(base.resolved, head.resolved, part, settings))
        runs, report = measure_pairs(workplace, context, options, part)
    report = accepting(context, report, base.resolved, whole=options.is_whole)
    return runs, with_verdict(report, context.config.policy)


def measure_pairs(
    workplace: Workplace, context: SessionContext, options: MeasureOptions, part: ShardCases
) -> tuple[tuple[Run, Run], Report]:
    """Measure the cases of ``part`` on both sides.

    Returns the runs, base's and head's, and a report without its verdict.
    """
    keeper = None
    if options.keep_bursts:
        keeper = BurstKeeper.within(options.keep_bursts, now())
        require_writable(keeper.path)
    session = SessionOptions(
        everything=options.everything or options.record, scale=part.scale, keeper=keeper
    )
    result = measure_cases(workplace, part.cases, session)
    before = _on_base(workplace)
    new, gone = _one_sided_points(workplace, options, part)
    removed = (*_removed_cases(workplace, options, before), *gone)
    report = _undecided_report(workplace, options, result, part)
    environments = workplace.environments
    failures, absent = _absent_on_base(workplace, part, result, report.failures, new)
    report = conclude(
        replace(report, failures=advised(failures, absent)),
        result,
        tuple(name for name in removed if part.reports(name)),
        tuple(sorted(absent)),
        context.config.policy,
        by_name(before),
    )
    if options.why and not result.cut_short and not any(report.injected.values()):
        why, notes = explain_moved(workplace, result.states, report.results)
        report = replace(report, why=why, notes=(*report.notes, *notes))
    runs = (
        run_of(result, "base", report, environments["base"]),
        run_of(result, "head", report, environments["head"]),
    )
    return runs, report


def _absent_on_base(
    workplace: Workplace,
    part: ShardCases,
    result: SessionResult,
    failures: Sequence[Failure],
    new: Sequence[str],
) -> tuple[tuple[Failure, ...], frozenset[str]]:
    """Return the failures of a session, and the cases that base lacks.

    A ``new`` case that base's own files have isn't new. It counts as a failure, because head's
    files don't define it on base.
    """
    measured = {state.case.id for state in result.states if state.outputs["base"]}
    not_given = tuple(
        Failure(name, "base", "discovery", "absent", "head's benchmark files lack it on base")
        for name in new
        if part.reports(name)
    )
    every = (*failures, *not_given)
    absent = workplace.not_on_base(every, part.whole, measured)
    kept = (failure for failure in every if failure not in not_given or failure.case not in absent)
    return tuple(kept), absent


def _announcement(
    base: ResolvedRev, head: ResolvedRev, part: ShardCases, settings: MeasureSettings
) -> str:
    maximum = f" to {settings.max_rounds}" if settings.max_rounds > settings.rounds else ""
    return (
        f"comparing {_named(base)} with {_named(head)}: {counted(len(part.cases), 'case')}, "
        f"{settings.rounds}{maximum} rounds of each, within {format_duration(settings.budget)}"
    )


def _named(side: ResolvedRev) -> str:
    name = "the working tree" if side.rev == "." else side.rev
    return f"{name} ({side.short})" if side.short not in name else name


def selected_cases(workplace: Workplace, options: MeasureOptions) -> tuple[Case, ...]:
    """Return head's selected cases. UnfitCommit if there are none."""
    selected = workplace.cases(options.selection)
    cases = tuple(case for case in selected if not options.only or case.id in options.only)
    if not cases:
        raise UnfitCommit(
            "nothing-selected",
            f"-k {options.selection!r} selects no case",
            "`perfci list` shows all cases.",
        )
    return cases


def selected_part(workplace: Workplace, options: MeasureOptions) -> ShardCases:
    """Return the selected cases that are measured here: all, or a shard's part."""
    ids = {case.id for case in selected_cases(workplace, options)}
    # split first, then leave cases out: so a check's shard confirms suspects among its own cases
    return part_of(workplace.cases(options.selection), options.shard).only(ids)


def _removed_cases(
    workplace: Workplace,
    options: MeasureOptions,
    before: Mapping[str, Mapping[str, DecoratorLiterals]],
) -> tuple[str, ...]:
    """Return the names of the benchmarks ``before`` in base's files that head's no longer have.

    A removed file in which no benchmark is found counts by its path. With a selection, only the
    removed benchmarks that it names count.
    """
    if options.only:
        return ()
    plan, head = workplace.plan, workplace.plan.head.discovery
    after = written_in(plan.head.root, plan.benchmark_files(plan.head.root))
    # a name in head's source without a case is broken, or not meant for this machine
    kept = {case.benchmark for case in head.cases}.union(*after.values())
    broken = {failure.case for failure in head.failures}
    gone = {
        name: file
        for file, names in before.items()
        for name in (names.keys() or {file} - after.keys())
        if name not in kept and file not in broken
    }
    stand_ins = (Case(name, name, {}, file, 0, "") for name, file in sorted(gone.items()))
    return tuple(case.id for case in select(stand_ins, options.selection))


def written_on_head(workplace: Workplace) -> Mapping[str, DecoratorLiterals]:
    """Return the benchmarks that head's files write, by their names."""
    plan = workplace.plan
    return by_name(written_in(plan.head.root, plan.benchmark_files(plan.head.root)))


def _on_base(workplace: Workplace) -> Mapping[str, Mapping[str, DecoratorLiterals]]:
    """Return the benchmarks of base's own files, by file, also where base's configuration looks.

    Both sides run head's files, so these are read and never imported.
    """
    root = workplace.plan.own_base
    files = workplace.plan.benchmark_files(root)
    with suppress(UsageError):  # base's configuration can't be read, and was mended since
        config = load_config(root)
        files += files_in(root, config.benchmarks, config.pattern)
    return written_in(root, dict.fromkeys(files))


def _definitions_note(workplace: Workplace, options: MeasureOptions) -> tuple[str, ...]:
    """Return a note on benchmark files that the commits have in different versions."""
    changed = sorted({name for side in workplace.plan.sides for name in side.overlay.changed})
    if not changed:
        return ()
    of = options.benchmarks_of.rev if options.benchmarks_of else "head"
    return (f"Benchmark files changed: {first_of(changed, 8)}. Both sides ran {of}'s.",)


def _one_sided_points(
    workplace: Workplace, options: MeasureOptions, part: ShardCases
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the cases that head's benchmark files define on head only, and those on base only.

    The same files may define different cases: an axis may take its values from the library, and a
    skip may depend on it. Files that fail on a side are left out, as they are reported as failures.
    """
    if options.only:
        return (), ()
    base, head = (side.discovery for side in workplace.plan.sides)
    broken = {failure.case for side in (base, head) for failure in side.failures}
    on_base = {case.id for case in base.cases}
    new = (case for case in part.whole if case.id not in on_base and not case.skip)
    measurable = {case.id for case in head.cases if not case.skip}
    gone = (case for case in select(base.cases, options.selection) if case.id not in measurable)
    return (
        tuple(case.id for case in new if case.file not in broken),
        tuple(case.id for case in gone if case.file not in broken and not case.skip),
    )


def _left_out(workplace: Workplace, options: MeasureOptions) -> tuple[str, ...]:
    """Return a note on the cases that the user's selection leaves out of the report."""
    everything = workplace.plan.head.discovery.cases
    left = len(everything) - len(select(everything, options.selection))
    if not left or options.only:
        return ()
    cases = counted(len(everything), "case")
    return (f"-k {options.selection!r} left out {left} of {cases}.",)


def _undecided_report(
    workplace: Workplace, options: MeasureOptions, result: SessionResult, part: ShardCases
) -> Report:
    """Return a session's report without its rows and its verdict."""
    sides = {side.name: side.side for side in workplace.plan.sides}
    environments = workplace.environments
    head, base = environments["head"], environments.get("base")
    report = Report(
        perfci_version=VERSION,
        verdict=UNDECIDED,
        results=(),
        failures=(),
        command=options.command,
        created_at=now(),
        base=sides.get("base"),
        head=sides["head"],
        environment=head,
        base_environment=base if base and base.key != head.key else None,
        notes=(
            *workplace.notes,
            *_left_out(workplace, options),
            *_definitions_note(workplace, options),
        ),
        benchmarks_of=options.benchmarks_of.sha if options.benchmarks_of else "",
        injected={
            str(name): share for name, share in workplace.plan.config.settings.inject.items()
        },
        shard=str(part.shard or ""),
        split=part.split_digest,
        timing=Timing(
            wall_s=workplace.elapsed_s(), measured_s=result.measured_s, rounds=result.rounds
        ),
    )
    failures = [why for why in workplace.failures(part.whole) if part.reports(why.case)]
    return with_session(report, part.cases, result, failures)


def now() -> str:
    """Return this moment as ISO 8601, to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")  # noqa: TID251 (it is the one that reads the clock)


def run(
    context: SessionContext, head: RequestedSide, options: MeasureOptions
) -> tuple[Run, Report]:
    """Measure ``head`` alone and return its run, and a report without a comparison."""
    with open_workplace(
        context, (head,), options.log_folder, benchmarks_of=options.benchmarks_of
    ) as workplace:
        part = selected_part(workplace, options)
        measured, report = measure_alone(workplace, replace(options, command="run"), part)
    return measured, with_verdict(report, context.config.policy)


def measure_alone(
    workplace: Workplace, options: MeasureOptions, part: ShardCases
) -> tuple[Run, Report]:
    """Measure the cases of ``part`` on the workplace's only side."""
    result = measure_cases(workplace, part.cases)
    report = _undecided_report(workplace, options, result, part)
    rows = rows_alone(result, workplace.plan.config.policy)
    run = run_of(result, "head", report, report.environment)
    return run, replace(report, results=rows)


def list_cases(
    context: SessionContext, head: RequestedSide, selection: str
) -> tuple[tuple[Case, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the cases that would be measured, a line for each file that failed, and notes.

    The notes are on the configuration only. How busy the machine is doesn't matter for a list.
    """
    with open_workplace(context, (head,)) as workplace:
        cases = selected_cases(workplace, MeasureOptions(selection))
        failed = tuple(f"{f.case}: {f.kind}: {f.message}" for f in workplace.failures(cases))
        notes = (*threshold_notes(workplace.plan), *unmatched_file_notes(workplace.plan))
        return cases, failed, notes


def within(context: SessionContext, seconds: float) -> SessionContext:
    """Return ``context`` with a budget of ``seconds``."""
    settings = replace(context.config.settings, budget=seconds)
    return replace(context, config=structs.replace(context.config, settings=settings))
