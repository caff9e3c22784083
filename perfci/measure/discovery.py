"""Discovery: a worker of each side lists the side's benchmarks.

The worker is also a throw-away start: it writes ``.pyc`` files and fills the page cache.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path

from perfci.config.loading import load_config
from perfci.errors import (
    BenchmarkError,
    MeasureError,
    NoTimeToImport,
    UnbuiltCommit,
    UnfitBenchmark,
    UnfitCommit,
    UsageError,
)
from perfci.measure.code_guard import described, lacking_advice
from perfci.measure.executor import Executor
from perfci.measure.plan import SessionPlan, SidePlan, files_in
from perfci.measure.selection import written_in
from perfci.measure.workers import TreeDeleted, WorkerEnded
from perfci.model.case import Case
from perfci.model.worker import Discovery, WorkOrder
from perfci.suites import form_of
from perfci.units import first_of

CUT_SHORT = "no_time"
"""The kind of failure of a file that had less time to import than ``timeout``, and may be sound."""
_USERS_ERRORS: Mapping[str, tuple[type[BenchmarkError], str]] = {
    "BenchmarkError": (UnfitBenchmark, "wrong-benchmark"),
    "duplicate_id": (UnfitBenchmark, "duplicate-id"),
    "broken_plugin": (BenchmarkError, "broken-plugin"),
}
"""Kinds of failure that are the user's mistakes, and the error that each raises, with its code."""
_NONE_THERE = "Write `@perfci.benchmark` before a function that returns the work."
_LEAST_IMPORT_S = 60.0
"""Base's own files get this time to import, even if the session's budget is spent."""


def discover(plan: SessionPlan, executor: Executor, budget_end: float) -> tuple[SidePlan, ...]:
    """Return the sides of the plan, each with its discovery and the code that its workers ran.

    All sides list their benchmarks at the same time. Raises BenchmarkError if a benchmark is
    written wrongly, or a device that is installed there can't be used: nothing was measured yet.
    """
    with ExitStack() as stack:
        listings: list[_ListingWorker] = []
        for side in plan.sides:
            # Sides after the first list on the parent's cores meanwhile. Without `quiet.threads`,
            # a number of threads may follow from the cores, so all sides list on the workers'.
            apart = plan.cores.parent if listings and plan.config.quiet.threads else ()
            order = plan.discovery_order(side)
            listing = _ListingWorker(plan, side, executor, order, budget_end, cores=apart)
            stack.callback(listing.close)
            listings.append(listing)
        return tuple(map(_discovered, listings))


def _discovered(listing: _ListingWorker) -> SidePlan:
    discovered = _listed(listing)
    if not all(map(os.path.isfile, listing.order.benchmark_files)):
        raise TreeDeleted.at(listing.order.root)
    for failure in discovered.discovery.failures:
        if failure.kind in _USERS_ERRORS:
            error, code = _USERS_ERRORS[failure.kind]
            what, _, advice = failure.message.partition("\n")
            raise error(code, what, advice)
    return discovered


def _listed(listing: _ListingWorker) -> SidePlan:
    """Return the side. If a file kills the worker, each is listed alone: only that one fails."""
    order, files = listing.order, listing.order.benchmark_files
    try:
        return listing.answer()
    except WorkerEnded as ended:
        if len(files) <= 1 or ended.failure.kind == "broken_plugin":
            named = ", ".join(file.removeprefix(f"{order.root}/") for file in files)
            failure = replace(ended.failure, case=named, stage="import")
            return replace(listing.side, discovery=Discovery((), (failure,), {}))
    return _joined([_listed(listing.again(replace(order, benchmark_files=(f,)))) for f in files])


def _joined(parts: Sequence[SidePlan]) -> SidePlan:
    """Return what several workers of a side listed as one discovery.

    If two of them have a fact, an import or a module of the same name, the later one counts.
    """
    discoveries = [part.discovery for part in parts]
    # the other fields come from a worker that answered, if any did
    discovery = replace(
        next((answered for answered in discoveries if answered.modules), discoveries[0]),
        cases=tuple(case for each in discoveries for case in each.cases),
        failures=tuple(failure for each in discoveries for failure in each.failures),
        facts=reduce(or_, (dict(each.facts) for each in discoveries)),
        imports=reduce(or_, (dict(each.imports) for each in discoveries)),
        modules=reduce(or_, (dict(each.modules) for each in discoveries)),
    )
    used = tuple(code for part in parts for code in part.used)
    return replace(parts[0], discovery=discovery, used=used)


class _ListingWorker:
    """A worker that lists benchmarks on ``cores``, from its start to its answer."""

    def __init__(
        self,
        plan: SessionPlan,
        side: SidePlan,
        executor: Executor,
        order: WorkOrder,
        budget_end: float,
        cores: tuple[int, ...] = (),
    ) -> None:
        self.plan, self.side, self.order = plan, side, order
        self._executor, self._budget_end = executor, budget_end
        self._watched = plan.watched(side)
        launch = plan.launch(side, self._watched)
        self._closed = False
        self._worker = executor.start(
            order,
            replace(launch, affinity=cores or launch.affinity),
            budget_end=math.inf,  # `answer` limits the wait instead
        )

    def again(self, order: WorkOrder) -> _ListingWorker:
        """Return another worker of the same side, which lists by ``order``."""
        return _ListingWorker(self.plan, self.side, self._executor, order, self._budget_end)

    def answer(self) -> SidePlan:
        """Wait for the answer, at most for half of the budget that is left.

        Raises WorkerEnded. Its failure is of the kind ``timeout`` only if the import had all the
        time that it may take. Otherwise the kind is ``CUT_SHORT``, and the file may be sound.
        """
        timeout, worker = self.plan.config.settings.timeout, self._worker
        left_s = max(0.0, self._budget_end - self._executor.now())
        within_s = min(timeout, left_s / 2)
        try:
            discovery = worker.field(worker.expect("discovery", within_s), "discovery", Discovery)
            worker.stage = "done"
        except WorkerEnded as ended:
            if ended.failure.kind == "timeout" and within_s < timeout:
                message = f"{ended.failure.message}, half of the remaining budget"
                raise WorkerEnded(
                    replace(ended.failure, kind=CUT_SHORT, message=message)
                ) from ended
            raise
        finally:
            self.close()
        return replace(self.side, discovery=discovery, used=(self._watched.used(),))

    def close(self) -> None:
        """End the worker, if it lives."""
        if not self._closed:
            self._closed = True
            self._worker.close()


def require_own_code(sides: Sequence[SidePlan], installed: Sequence[str]) -> tuple[str, ...]:
    """Return notes on the project's packages that sides import from outside their trees.

    Raises UsageError if such a package would be measured instead of the commit's code: all sides
    of one Python have the same installed copy. ``installed`` are packages of which the user wants
    the installed copy measured.
    """
    separate = separate_packages(sides)
    for side in sides:
        for code in (code for used in side.used for code in used.wrong):
            if code.where != "copy":
                raise UsageError("wrong-code", described(code, side.name), code.advice)
            if code.name.partition(".")[0] not in separate:
                raise UnfitCommit("installed-copy", described(code, side.name), code.advice)
    elsewhere = {code for side in sides for used in side.used for code in used.elsewhere}
    notes = []
    for package in sorted({*installed, *separate}):
        if files := sorted({code.path for code in elsewhere if code.name == package}):
            listed = ", ".join(files)
            notes.append(f"`{package}` is the installed one, not the commits': {listed}.")
    return tuple(notes)


def separate_packages(sides: Sequence[SidePlan]) -> frozenset[str]:
    """Return the packages that each side has installed in a Python of its own."""
    files: dict[str, set[str]] = {}
    for side in sides:
        modules = (module for used in side.used for module in used.elsewhere)
        for name, path in {module.name: module.path for module in modules}.items():
            if "." not in name:
                files.setdefault(name, set()).add(path)
    return frozenset(name for name, paths in files.items() if len(paths) > 1)


def threshold_notes(plan: SessionPlan) -> tuple[str, ...]:
    """Return a note on each benchmark that only the configuration's thresholds name.

    Empty if a file can't be imported: the file may have the benchmark.
    """
    if any(side.discovery.failures for side in plan.sides):
        return ()
    names = {case.benchmark for side in plan.sides for case in side.discovery.cases}
    return tuple(
        f"The thresholds of `{name}`: no benchmark has that name."
        for name in sorted(plan.config.policy.thresholds.keys() - names)
    )


def unmatched_file_notes(plan: SessionPlan) -> tuple[str, ...]:
    """Return a note on the files that define benchmarks, but whose names don't match, if any."""
    root = plan.head.root
    files = set(map(str, (root / plan.config.benchmarks).rglob("*.py"))) - {
        *plan.benchmark_files(root)
    }
    beside = written_in(root, sorted(filter(os.path.isfile, files)))
    writing = [file for file, names in beside.items() if names]
    if not writing:
        return ()
    verb, whose = (
        ("writes", "its name doesn't") if len(writing) == 1 else ("write", "their names don't")
    )
    named = f"{whose} match `pattern`, {plan.config.pattern}"
    return (f"{first_of(writing, 3)} {verb} benchmarks that are not measured: {named}.",)


def require_cases(plan: SessionPlan, notes: Sequence[str]) -> None:
    """Raise if head has no cases: MeasureError if files failed, UsageError if nothing is written.

    ``notes`` of the checkout, on submodules for example, may say why a module is missing.
    """
    failures = plan.head.discovery.failures
    if plan.head.discovery.cases:
        return
    where = plan.config.benchmarks
    if failures:
        first = failures[0]
        cut = next((failure for failure in failures if failure.kind == CUT_SHORT), None)
        if cut is not None:
            raise NoTimeToImport(
                "no-time-to-import",
                f"no benchmark file in {where} was imported in time; {cut.case}: {cut.message}",
                f"{cut.log_tail}\nRaise --budget (imports may take half of it), or mend the import "
                "that hangs.".strip(),
            )
        advice = "Fix the import"
        if first.kind == "timeout":
            advice = "Mend the code that hangs there, or raise `timeout` in [tool.perfci]"
        elif lacking := lacking_advice(
            first.message, str(plan.head.root), plan.config.python_path, plan.head.side.python
        ):
            advice = lacking
        named = "" if first.message.startswith(first.case) else f"{first.case}: "
        raise UnbuiltCommit(
            "no-benchmark-imports",
            f"no benchmark file in {where} could be imported; {first.kind}: {named}{first.message}",
            "\n".join((first.log_tail, *notes, f"{advice}.")).strip(),
        )
    if not (plan.head.root / where).exists():
        raise UsageError(
            "no-benchmarks",
            f"no benchmarks in {where}: head lacks this folder",
            "Set `benchmarks` in [tool.perfci], or begin with `perfci init`.",
        )
    raise UsageError(
        "no-benchmarks",
        f"no benchmarks in {where}",
        _advice_for_files(plan)
        or "Write one with `perfci init`, or set `benchmarks` in [tool.perfci].",
    )


def _advice_for_files(plan: SessionPlan) -> str:
    """Return what to do about files that are there, but give no benchmarks; empty without any."""
    named = [
        str(Path(file).relative_to(plan.head.root)) for file in plan.benchmark_files(plan.head.root)
    ]
    if named:
        form = form_of(str(plan.head.root / named[0]), str(plan.head.root))
        advice = form.NONE_THERE if form else _NONE_THERE
        return f"{first_of(named, 3)} defines none. {advice}"
    return "\n".join(unmatched_file_notes(plan)[:3])


def cases_of_base(
    plan: SessionPlan,
    check_out_base: Callable[[], AbstractContextManager[SidePlan]],
    executor: Executor,
    budget_end: float,
) -> Callable[[Case], bool]:
    """Return a predicate that is true for cases that base's own benchmark files have, or may have.

    The files are imported in a tree of base's commit as it is. A case that base's own definition
    skips doesn't count. If base can't be prepared, it may have any case. If a file can't be
    imported, it may have any case of its own, and of the benchmarks that its source defines.
    """
    with ExitStack() as stack:
        try:
            base = stack.enter_context(check_out_base())
            base = replace(base, discovery=plan.sides[0].discovery)
            own = load_config(base.root)
            own_files = files_in(base.root, own.benchmarks, own.pattern)
            files = tuple(dict.fromkeys((*plan.benchmark_files(base.root), *own_files)))
            if not files:
                return lambda _: False
            here = replace(plan, sides=(base,))
            order = replace(here.discovery_order(base), benchmark_files=files, project=())
            until = max(budget_end, executor.now() + 2 * _LEAST_IMPORT_S)
            discovery = _discovered(_ListingWorker(here, base, executor, order, until)).discovery
        except (UsageError, MeasureError):  # of base's configuration, environment, build, benchmark
            return lambda _: True
        broken = {failure.case for failure in discovery.failures}
        unread = [file for file in files if Path(file).relative_to(base.root).as_posix() in broken]
        written = {name for names in written_in(base.root, unread).values() for name in names}
    known = {case.id for case in discovery.cases if not case.skip}
    return lambda case: case.id in known or case.benchmark in written or case.file in broken
