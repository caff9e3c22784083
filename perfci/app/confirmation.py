"""Confirming: what ``check`` suspects is measured again, beside the baseline's commit.

Whatever keeps a suspect from being measured again, what head gave alone is kept: it stays a
suspicion, and the verdict says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci.app.compare import BothSides, Request, measure_both
from perfci.app.run import Alone
from perfci.app.worker_notes import burst_findings, worker_notes
from perfci.baselines.baseline import Baseline
from perfci.errors import PerfciError, UsageError, refusal
from perfci.model.finding import Finding
from perfci.model.report import Comparison, Timing
from perfci.model.run import Run, Side
from perfci.model.words import words
from perfci.model.worker import WorkerOutput
from perfci.session.workplace import Surroundings, Wanted
from perfci.units import counted
from perfci.verdict.decision import failed_on_base, reason_of
from perfci.verdict.judgement import adjust
from perfci.verdict.merge import joined_ran, joined_same_code
from perfci.verdict.policy import Policy
from perfci.verdict.report import Judged, Measured

ENDED_EARLY = "the session ended before every suspect was measured again"
"""Why suspects stay unconfirmed where it was interrupted, or the disk filled."""

_LEAST_CONFIRMING_S = 10.0
"""A confirmation gets what head alone has left of the budget, and never less than this."""


@dataclass(frozen=True, slots=True)
class _Again:
    """What measuring again gave: both sides of each commit, of ``cases``; why others have none."""

    commits: tuple[BothSides, ...]
    cases: tuple[str, ...]
    why_not: tuple[str, ...]
    interrupted: bool

    @property
    def rows(self) -> tuple[Comparison, ...]:
        return tuple(row for one in self.commits for row in one.judged.rows)


def confirmed(
    around: Surroundings,
    alone: Alone,
    judged: Judged,
    suspected: Sequence[str],
    baselines: Mapping[str, Baseline],
    head: Wanted,
    request: Request,
) -> tuple[Measured, Judged]:
    """Measure each suspect's baseline commit beside head; those rows replace the suspicion.

    Suspects that can't be measured again stay suspicions, and the verdict says so.
    """
    of_commit: dict[str, list[str]] = {}
    for case in suspected:
        of_commit.setdefault(baselines[case].sha, []).append(case)
    again = _measured_again(around, of_commit, head, request, alone.measured.timing.wall_s)
    kept, why_kept = _kept(judged.rows, again, around.config.settings.rounds)
    cases = [case for case in again.cases if case not in kept]
    both = _joined_rows(judged, again, cases, around.config.policy)
    why = "; ".join((*again.why_not, *why_kept))
    if why:
        both = unconfirmed(both, why)
    notes, of_again = notes_of_both(alone, again.commits)
    measured = _joined(alone.measured, again, cases, both.rows)
    both = replace(both, notes=(*both.notes, *of_again))
    findings = findings_of_both(alone, again.commits)
    return replace(measured, notes=notes, findings=findings), both


def _joined_rows(judged: Judged, again: _Again, cases: Sequence[str], policy: Policy) -> Judged:
    """Return the rows of ``cases`` as they were measured again, and all others as they were."""
    measured = adjust([row for row in again.rows if row.case in cases], policy)
    said = f"{counted(len(cases), 'suspected case')} measured again, both sides in pairs."
    return Judged(
        (
            *(row for row in judged.rows if row.case not in cases),
            *(replace(row, confirmed=True) for row in measured),
        ),
        (
            *(one for one in judged.explanations if one.case not in cases),
            *(
                each
                for one in again.commits
                for each in one.judged.explanations
                if each.case in cases
            ),
        ),
        (*judged.notes, *([said] if cases else [])),
        tuple(each for one in again.commits for each in one.judged.why if each.case in cases),
    )


def _joined(
    measured: Measured, again: _Again, cases: Sequence[str], rows: Sequence[Comparison]
) -> Measured:
    """Return what was measured at first and again; ``cases`` are those whose new rows count."""
    commits = [one.measured for one in again.commits]
    parts = (measured, *commits)
    return replace(
        measured,
        base=named(commits[0].base) if len(commits) == 1 else measured.base,
        failures=tuple(failure for one in parts for failure in one.failures),
        interrupted=again.interrupted or any(one.interrupted for one in parts),
        durations=_summed(parts),
        not_measured={
            metric: why
            for metric, why in measured.not_measured.items()
            if not any(row.metric == metric and row.head for row in rows)
        },
        ran=joined_ran(parts),
        same_code=tuple(case for case in joined_same_code(commits) if case in cases),
        timing=Timing(
            sum(one.timing.wall_s for one in parts),
            sum(one.timing.measured_s for one in parts),
            sum(one.timing.rounds for one in parts),
        ),
    )


def unconfirmed(judged: Judged, why: str) -> Judged:
    """Return ``judged`` with what regressed in it called unconfirmed, for the reason ``why``."""
    rows = tuple(
        replace(row, confirmed=False)
        if row.status == "regressed" and row.confirmed is None
        else row
        for row in judged.rows
    )
    return replace(judged, rows=rows, notes=(*judged.notes, f"Unconfirmed: {why}."))


def notes_of_both(
    alone: Alone, again: Sequence[BothSides]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the notes of head alone, and those of measuring again, named as that.

    What workers met is said once, of both.
    """
    own = _outputs(alone.run)
    everything = [*own, *(one for both in again for run in both.runs for one in _outputs(run))]
    notes = _without_workers(alone.measured, own)
    of_again: dict[str, None] = {}
    for one in again:
        outputs = [output for run in one.runs for output in _outputs(run)]
        said = _without_workers(one.measured, outputs)
        of_again |= dict.fromkeys(f"measured again: {note}" for note in said if note not in notes)
    return (*notes, *worker_notes(everything)), tuple(of_again)


def findings_of_both(alone: Alone, again: Sequence[BothSides]) -> tuple[Finding, ...]:
    """Return the findings of all workers: two counts would look like one note twice."""
    runs = (alone.run, *(run for both in again for run in both.runs))
    return burst_findings([output for run in runs for output in _outputs(run)])


def _outputs(run: Run) -> list[WorkerOutput]:
    return [output for case in run.cases for output in case.workers]


def _without_workers(measured: Measured, outputs: Sequence[WorkerOutput]) -> tuple[str, ...]:
    of_workers = worker_notes(outputs)
    return tuple(note for note in measured.notes if note not in of_workers)


def named(side: Side | None) -> Side | None:
    """Call a side what it is to a reader: the baseline's commit, whatever rev found it."""
    return side and replace(side, rev=f"baseline of {side.sha[:12]}")


def _measured_again(
    around: Surroundings,
    of_commit: Mapping[str, Sequence[str]],
    head: Wanted,
    request: Request,
    spent_s: float,
) -> _Again:
    """Measure each commit's suspects beside head, within what the budget has left.

    Each session has log files of its own: rounds are counted from one again.
    """
    began = around.executor.now() - spent_s
    commits: list[BothSides] = []
    measured: list[str] = []
    why_not: list[str] = []
    interrupted = False
    try:
        for sha, cases in of_commit.items():
            left_s = around.config.settings.budget - (around.executor.now() - began)
            within = _within(around, max(_LEAST_CONFIRMING_S, left_s))
            logs = request.log_folder and request.log_folder / f"confirming-{sha[:12]}"
            asked = replace(request, only=tuple(cases), log_folder=logs)
            one = _beside_head(within, sha, head, asked)
            if isinstance(one, str):
                why_not.append(one)
                continue
            commits.append(one)
            measured += cases
            if one.measured.interrupted:
                interrupted = True
                break
    except KeyboardInterrupt:  # while a commit was checked out or built; else there is a report
        interrupted = True
    if interrupted:
        why_not.append(ENDED_EARLY)
    return _Again(tuple(commits), tuple(measured), tuple(why_not), interrupted)


def _beside_head(around: Surroundings, sha: str, head: Wanted, request: Request) -> BothSides | str:
    """Measure a baseline's commit beside head, or return why that can't be done."""
    try:
        resolved = around.repository.resolve(sha)
    except UsageError:
        return f"the baseline's commit {sha[:12]} isn't in this clone"
    try:
        return measure_both(around, Wanted("base", resolved, head.python), head, request)
    except (PerfciError, OSError) as error:
        known = error if isinstance(error, PerfciError) else refusal(error)
        what = known.message.splitlines()[0]
        return f"the baseline's commit {sha[:12]} could not be measured: {what}"


def _within(around: Surroundings, seconds: float) -> Surroundings:
    settings = replace(around.config.settings, budget=seconds)
    return replace(around, config=replace(around.config, settings=settings))


def _kept(
    suspicion: Sequence[Comparison], again: _Again, rounds: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the cases measured again that stay suspicions: their new rows say less. And why.

    Those that base can't be measured at; and those that had regressed and now got fewer than
    ``rounds``.
    """
    regressed = {row.case for row in suspicion if row.status == "regressed" and row.gate == "fail"}
    kept: list[str] = []
    why: list[str] = []
    short: list[str] = []
    on_base = failed_on_base(one for both in again.commits for one in both.measured.failures)
    for case in again.cases:
        rows = [row for row in again.rows if row.case == case]
        if any(_is_decided(row, rounds) for row in rows):
            continue
        if case not in on_base and any(row.status == "failed" for row in rows):
            continue
        without_base = next((row for row in rows if row.status in {"new", "failed"}), None)
        if without_base:
            kept.append(case)
            reason = reason_of(without_base)
            because = f" ({words(reason)})" if reason else ""
            why.append(f"the baseline's commit no longer runs {case}{because}")
        elif not rows:
            kept.append(case)
            why.append(f"the baseline's commit does not have {case}")
        elif case in regressed:
            short.append(case)
    if short and not again.interrupted:
        why.append(f"no time was left to measure {', '.join(short)} again; raise --budget")
    return (*kept, *short), tuple(why)


def _is_decided(row: Comparison, least: int) -> bool:
    """Whether it had enough workers, or needs no more: it is the same code."""
    return row.method == "same_code" or (row.base is not None and row.base.workers >= least)


def _summed(parts: Sequence[Measured]) -> dict[str, float]:
    """Return how long each case was measured in all ``parts``, in s."""
    total: dict[str, float] = {}
    for part in parts:
        for case, spent in part.durations.items():
            total[case] = round(total.get(case, 0.0) + spent, 3)
    return total
