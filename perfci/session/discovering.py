"""Asking each side what its benchmarks are, in a worker of its own.

That worker is also the throw-away start which writes ``.pyc`` files and fills the page cache,
and with ``-X importtime`` it tells which modules are slow to import.
"""

from __future__ import annotations

import ast
import math
import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perfci.config.reading import nearest
from perfci.errors import BenchmarkError, MeasureError, UsageError
from perfci.model.case import Case, Discovery, Failure
from perfci.model.worker import WorkOrder
from perfci.session.conversation import WorkerEnded, import_times
from perfci.session.executor import Executor
from perfci.session.plan import SessionPlan, SidePlan
from perfci.session.ran.judging import Judged, said

# Which benchmarks a file writes, read from its text: a side's own files are never imported.

_PACKAGE = "perfci"
_DECORATOR = "benchmark"


@dataclass(frozen=True, slots=True)
class Written:
    """What a benchmark's decorator says in literals, or by a name that is given one in the file.

    ``metrics`` is None where it limits none, and where its value is computed: then nothing is
    known to be left out. Of ``thresholds`` those are here whose value can be read. Where it stands
    in an `if`, a `try` or the like, it is ``conditional``: not every machine has it.
    """

    metrics: tuple[str, ...] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    conditional: bool = False


def written_in(root: Path, files: Iterable[str]) -> Mapping[str, Mapping[str, Written]]:
    """Return the benchmarks that each file writes, by its path relative to ``root``."""
    return {
        Path(file).relative_to(root).as_posix(): benchmarks_of(Path(file).read_bytes())
        for file in files
    }


def benchmarks_of(source: bytes) -> Mapping[str, Written]:
    """Return the benchmarks that ``source`` writes; none where it can't be parsed.

    A name that is computed isn't known, nor is a benchmark that isn't made by a decorator.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of the user's own string escapes
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all that the parser raises
        return {}
    statements = tuple(_of_the_module(tree.body))
    packages, decorators = _imported(statements)
    constants = _constants(statements)
    unconditional = set(tree.body)
    return {
        name: _written(decorator, constants, conditional=statement not in unconditional)
        for statement in statements
        if isinstance(statement, ast.FunctionDef)
        for decorator in statement.decorator_list
        if _marks(decorator, packages, decorators)
        and (name := _name(decorator, statement.name)) is not None
    }


def _of_the_module(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported, those in `if` and `try` too."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for inner in ast.iter_child_nodes(statement):
            if isinstance(inner, ast.stmt):
                yield from _of_the_module((inner,))
            elif isinstance(inner, (ast.ExceptHandler, ast.match_case)):
                yield from _of_the_module(inner.body)


def _imported(statements: Iterable[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return what the file calls perfci, and what it calls the decorator."""
    packages: set[str] = set()
    decorators: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Import):
            packages |= {one.asname or one.name for one in statement.names if one.name == _PACKAGE}
        elif isinstance(statement, ast.ImportFrom) and statement.module == _PACKAGE:
            decorators |= {
                one.asname or one.name for one in statement.names if one.name == _DECORATOR
            }
    return packages, decorators


def _marks(decorator: ast.expr, packages: set[str], decorators: set[str]) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Name):
        return called.id in decorators
    return (
        isinstance(called, ast.Attribute)
        and called.attr == _DECORATOR
        and isinstance(called.value, ast.Name)
        and called.value.id in packages
    )


def _name(decorator: ast.expr, function: str) -> str | None:
    given = decorator.keywords if isinstance(decorator, ast.Call) else ()
    for keyword in given:
        if keyword.arg == "name":
            value = keyword.value
            constant = value.value if isinstance(value, ast.Constant) else ""
            if constant is None:
                return function
            return constant if isinstance(constant, str) and constant else None
    return function


def _written(
    decorator: ast.expr, constants: Mapping[str, ast.expr], *, conditional: bool
) -> Written:
    given = decorator.keywords if isinstance(decorator, ast.Call) else ()
    values = {one.arg: _literal(one.value, constants) for one in given if one.arg}
    metrics, thresholds = values.get("metrics"), values.get("thresholds")
    return Written(
        metrics=_texts(metrics) if isinstance(metrics, (list, tuple)) else None,
        thresholds={
            name: float(value)
            for name, value in (thresholds.items() if isinstance(thresholds, dict) else ())
            if isinstance(name, str) and isinstance(value, (int, float)) and value >= 0.0
        },
        conditional=conditional,
    )


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _constants(statements: Iterable[ast.stmt]) -> dict[str, ast.expr]:
    """Return what stands behind each name that the module gives a value exactly once."""
    given: dict[str, list[ast.expr]] = {}
    for statement in statements:
        if isinstance(statement, ast.Assign):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    given.setdefault(node.id, []).append(statement.value)
    return {name: values[0] for name, values in given.items() if len(values) == 1}


def _literal(value: ast.expr, constants: Mapping[str, ast.expr]) -> Any:
    """Return the value of a literal, or of a name that stands for one; None for all else."""
    if isinstance(value, ast.Name):
        value = constants.get(value.id, value)
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


NO_TIME_TO_IMPORT = "no-time-to-import"
"""The slug where the session had too little time to say whether a side's files import."""
CUT_SHORT = "no_time"
"""The kind of failure of a file that had less than ``timeout``: it may well be a sound one."""

_IMPORT_TIMES = 1 << 22
_USERS_ERRORS = {
    "BenchmarkError": "wrong-benchmark",
    "duplicate_id": "duplicate-id",
    "broken_plugin": "broken-plugin",
}


@dataclass(frozen=True, slots=True)
class Found:
    """What one side answered, each module's import time in s, and what its workers ran."""

    discovery: Discovery
    import_times: Mapping[str, float]
    ran: tuple[Judged, ...] = ()


def discover(plan: SessionPlan, side: SidePlan, executor: Executor, budget_end: float) -> Found:
    """Return what this side's benchmark files hold.

    A file that kills the worker is found by asking for each file alone; the others go on.
    Raises BenchmarkError where a benchmark is written wrongly, or a device that is installed there
    can't be used: nothing was measured yet.
    """
    order = plan.discovery_order(side)
    try:
        found = _ask(plan, side, executor, order, budget_end)
    except WorkerEnded as ended:
        if len(order.benchmark_files) <= 1:
            found = Found(Discovery((), (_of_file(ended.failure, order),), {}), {})
        else:
            found = _one_by_one(plan, side, executor, order, budget_end)
    for failure in found.discovery.failures:
        if failure.kind in _USERS_ERRORS:
            what, _, advice = failure.message.partition("\n")
            raise BenchmarkError(_USERS_ERRORS[failure.kind], what, advice)
    return found


def _one_by_one(
    plan: SessionPlan, side: SidePlan, executor: Executor, order: WorkOrder, budget_end: float
) -> Found:
    cases: list[Case] = []
    failures: list[Failure] = []
    facts: dict[str, str] = {}
    times: dict[str, float] = {}
    ran: tuple[Judged, ...] = ()
    first: Discovery | None = None
    saved = order.saved
    for file in order.benchmark_files:
        alone = replace(order, benchmark_files=(file,), saved=saved)
        saved = ()
        try:
            found = _ask(plan, side, executor, alone, budget_end)
        except WorkerEnded as ended:
            failures.append(_of_file(ended.failure, alone))
            continue
        cases += found.discovery.cases
        failures += found.discovery.failures
        facts |= found.discovery.facts
        times |= found.import_times
        ran += found.ran
        first = first or found.discovery
    whole = Discovery(tuple(cases), tuple(failures), facts)
    if first:
        whole = replace(first, cases=whole.cases, failures=whole.failures, facts=whole.facts)
    return Found(whole, times, ran)


def _ask(
    plan: SessionPlan, side: SidePlan, executor: Executor, order: WorkOrder, budget_end: float
) -> Found:
    """Ask one worker; a file that hangs takes half of what is left, no more.

    WorkerEnded is a ``timeout`` where it had all the time it may take: then the import is at fault.
    """
    left_s = max(0.0, budget_end - executor.now())
    within_s = min(plan.settings.timeout, left_s / 2)
    watched = plan.watched(side)
    launch = replace(plan.launch(side, watched), import_times=True)
    worker = executor.start(order, launch, budget_end=math.inf, log_tail=_IMPORT_TIMES)
    try:
        discovery = worker.field(worker.expect("discovery", within_s), "discovery", Discovery)
        worker.stage = "done"
    except WorkerEnded as ended:
        if ended.failure.kind == "timeout" and within_s < plan.settings.timeout:
            message = f"{ended.failure.message}, half of what was left of the budget"
            raise WorkerEnded(replace(ended.failure, kind=CUT_SHORT, message=message)) from ended
        raise
    finally:
        worker.close()
    if not watched:
        return Found(discovery, import_times(worker.log))
    judged = watched.judged()
    failures = tuple(_with_advice(one, judged.advice) for one in discovery.failures)
    return Found(replace(discovery, failures=failures), import_times(worker.log), (judged,))


def _with_advice(failure: Failure, advice: str) -> Failure:
    """Return an import that failed with what to set, where that may be why."""
    if not advice or failure.kind not in {"ImportError", "ModuleNotFoundError"}:
        return failure
    return replace(failure, message=f"{failure.message}\n{advice}")


def _of_file(failure: Failure, order: WorkOrder) -> Failure:
    named = [file.removeprefix(f"{order.benchmark_root}/") for file in order.benchmark_files]
    return replace(failure, case=", ".join(named) or "saved models", stage="import")


def require_own_code(found: Mapping[str, Found], installed: Sequence[str]) -> tuple[str, ...]:
    """Return notes on the sides' own packages that they import from outside their trees.

    UsageError where that would measure code which isn't the commit's: every side of one Python
    has the same installed copy. ``installed`` are those that are meant so.
    """
    notes = []
    of_copies = _apart(found)
    for name, side in found.items():
        for one in (one for judged in side.ran for one in judged.wrong):
            if one.where == "copy" and one.name.partition(".")[0] in of_copies:
                continue
            slug = "installed-copy" if one.where == "copy" else "wrong-code"
            raise UsageError(slug, said(one, name), one.advice)
    told = {*installed, *of_copies}
    for package in sorted(told):
        files = {
            one.path
            for side in found.values()
            for judged in side.ran
            for one in judged.elsewhere
            if one.name == package
        }
        if files:
            listed = ", ".join(sorted(files))
            notes.append(f"`{package}` is the installed one, not the commits': {listed}.")
    return tuple(notes)


def packages_apart(found: Mapping[str, Found]) -> frozenset[str]:
    """Return the packages that each side has installed in a Python of its own."""
    return frozenset(_apart(found))


def _apart(found: Mapping[str, Found]) -> set[str]:
    files: dict[str, list[str]] = {}
    for side in found.values():
        mine = {one.name: one.path for judged in side.ran for one in judged.elsewhere}
        for name, path in mine.items():
            if "." not in name:
                files.setdefault(name, []).append(path)
    return {name for name, ones in files.items() if len(set(ones)) > 1}


def without_benchmark(found: Mapping[str, Found], thresholds: Collection[str]) -> tuple[str, ...]:
    """Return a note on each of the configuration's ``thresholds`` whose benchmark no side has.

    None where a file can't be imported, which may have it.
    """
    if any(side.discovery.failures for side in found.values()):
        return ()
    names = sorted({case.benchmark for side in found.values() for case in side.discovery.cases})
    notes = []
    for name in sorted(set(thresholds).difference(names)):
        near = nearest(name, names)
        hint = f" Did you mean `{near}`?" if near else ""
        notes.append(f"The thresholds of `{name}`: no benchmark has that name.{hint}")
    return tuple(notes)


def not_matching(plan: SessionPlan) -> tuple[str, ...]:
    """Return a note on each file beside the benchmark files that writes benchmarks, too."""
    folder = plan.benchmark_root / plan.benchmarks
    files = set(map(str, folder.rglob("*.py"))) - set(plan.benchmark_files(plan.benchmark_root))
    beside = written_in(plan.benchmark_root, sorted(filter(os.path.isfile, files)))
    return tuple(
        f"{file} writes benchmarks that are not measured: its name doesn't match `pattern`, "
        f"{plan.pattern}."
        for file, names in beside.items()
        if names
    )


def require_cases(
    cases: tuple[Case, ...], failures: tuple[Failure, ...], where: str, python: str
) -> None:
    """Raise where nothing is left to measure: UsageError for none written, MeasureError else.

    ``python`` is what imported them.
    """
    if cases:
        return
    if failures:
        first = failures[0]
        cut = next((failure for failure in failures if failure.kind == CUT_SHORT), None)
        if cut is not None:
            raise MeasureError(
                NO_TIME_TO_IMPORT,
                f"no benchmark file in {where} was imported in the time there was; {cut.case}: "
                f"{cut.message}",
                f"{cut.log_tail}\nRaise --budget (imports may take half of it); where an import "
                "hangs, mend it.".strip(),
            )
        advice = "Fix the import"
        if first.kind == "timeout":
            advice = "Mend what hangs there, or raise `timeout` in [tool.perfci]"
        elif "No module named 'torch'" in first.message:
            advice = (
                f"{python} measured, and has no torch. Name the Python that has: `python` in "
                "[tool.perfci], or --python"
            )
        raise MeasureError(
            "no-benchmark-imports",
            f"no benchmark file in {where} could be imported; {first.case}: {first.message}",
            f"{first.log_tail}\n{advice}; `perfci list` shows what is found.".strip(),
        )
    raise UsageError(
        "no-benchmarks",
        f"no benchmarks in {where}",
        "Write one with `perfci init`, or set `benchmarks` in [tool.perfci].",
    )
