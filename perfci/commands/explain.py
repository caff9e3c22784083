"""``explain``: what differs inside of chosen cases, whether they moved or not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perfci.commands.compare import MeasureOptions, selected_cases
from perfci.commands.project import Project, load_report
from perfci.errors import UsageError
from perfci.files import require_writable
from perfci.measure.explaining import explain_case, write_trace
from perfci.measure.opening import open_workplace
from perfci.measure.progress import case_states
from perfci.model.finding import Why
from perfci.model.report import Comparison
from perfci.outputs import unwritable


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """Both revisions, the cases to explain, and the time for each case.

    ``rows`` are the rows of a report that moved, None without a report. Both sides run the
    benchmark files of ``benchmarks_of``, or head's where that is empty. ``traces`` is the folder
    for Chrome traces of both sides.
    """

    base: str
    head: str
    selection: str
    python: str | None
    within_s: float
    rows: tuple[Comparison, ...] | None = None
    benchmarks_of: str = ""
    traces: Path | None = None


def of_report(path: Path, selection: str, python: str | None, within_s: float) -> ExplainRequest:
    """Return the request for the sides of a report file. UsageError where it has only one."""
    report = load_report(path)
    if report.base is None or not report.base.sha or not report.head.sha:
        raise UsageError(
            "one-side", f"{path} is no report of two commits", "Name one that `compare` wrote."
        )
    if report.base.dirty or report.head.dirty or "+" in report.benchmarks_of:
        raise UsageError(
            "working-tree",
            f"{path} is of a working tree, which nothing but its commit is kept of",
            "Name both sides: perfci explain BASE . -k CASE",
        )
    moved = tuple(row for row in report.results if row.status in {"regressed", "improved"})
    return ExplainRequest(
        report.base.sha,
        report.head.sha,
        selection,
        python,
        within_s,
        moved,
        report.benchmarks_of,
    )


def explain(project: Project, request: ExplainRequest) -> tuple[Why, ...]:
    """Run the chosen cases of both sides under instruments, or those that moved in a report."""
    if request.rows is not None and not request.rows:
        project.caller.say("perfci: nothing moved in the report.", err=True)
        return ()
    sides = (
        project.side("base", request.base, request.python),
        project.side("head", request.head, request.python),
    )
    if request.traces:
        try:
            require_writable(request.traces / "trace.json")
        except OSError as error:
            raise unwritable(request.traces, error) from error
    moved: dict[str, list[Comparison]] = {}
    for row in request.rows or ():
        moved.setdefault(row.case, []).append(row)
    files = project.repository.resolve(request.benchmarks_of) if request.benchmarks_of else None
    with open_workplace(project.surroundings(), sides, benchmarks_of=files) as workplace:
        chosen = selected_cases(workplace, MeasureOptions(request.selection))
        on_base = {case.id for case in workplace.found["base"].discovery.cases}
        for case in chosen:
            if case.id not in on_base:
                why = f"perfci: {case.id} is on head alone: there is nothing to compare it with."
                project.caller.say(why, err=True)
        cases = tuple(
            case
            for case in chosen
            if not case.skip and case.id in on_base and (request.rows is None or case.id in moved)
        )
        explained = []
        for state in case_states(cases, ("base", "head")):
            project.caller.step(f"looking inside {state.case.id} …")
            explained.append(
                explain_case(
                    workplace.plan,
                    workplace.executor,
                    state.case,
                    state.slug,
                    moved.get(state.case.id, ()),
                    within_s=request.within_s,
                    keep_trace=(
                        partial(write_trace, request.traces, state.slug) if request.traces else None
                    ),
                )
            )
        return tuple(explained)
