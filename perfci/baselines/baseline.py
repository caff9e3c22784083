"""Pure: a baseline, what a run adds to it, and the environment that it is of."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from perfci.metrics import METRICS
from perfci.model.case import Case, Metric
from perfci.model.finding import Finding, finding
from perfci.model.run import CaseRun, Environment, Run
from perfci.model.worker import GraphEvent, WorkerOutput
from perfci.version import BASELINE_SCHEMA

MOST_SESSIONS = 10
_NOTE = "note_"
"""Facts whose names begin so are kept to be read, and decide nothing."""


@dataclass(frozen=True, slots=True)
class StoredWorker:
    """One worker's values: its summary and quantiles, not its samples."""

    round: int
    samples: int
    values: Mapping[str, float]
    quantiles: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The workers that one session measured. ``created_at`` is ISO 8601."""

    id: str
    created_at: str
    workers: tuple[StoredWorker, ...]
    graph_events: tuple[GraphEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
    """One case's stored measurements of one commit in one environment."""

    case: str
    source_hash: str
    sha: str
    environment: str
    created_at: str
    sessions: tuple[StoredSession, ...]
    extra_metrics: tuple[Metric, ...] = ()
    schema: int = BASELINE_SCHEMA

    def outputs(self) -> tuple[WorkerOutput, ...]:
        """Return the stored workers as base's outputs, session after session."""
        return tuple(
            WorkerOutput(
                case=self.case,
                side="base",
                round=worker.round,
                values=worker.values,
                samples=worker.samples,
                quantiles=worker.quantiles,
                graph_events=session.graph_events,
                extra_metrics=self.extra_metrics,
            )
            for session in self.sessions
            for worker in session.workers
        )


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One metric of one case in two environments, as medians over workers."""

    case: str
    metric: str
    unit: str
    first: float
    second: float

    @property
    def ratio(self) -> float | None:
        """Second ÷ first, where there is one."""
        return self.second / self.first if self.first > 0 else None


def with_run(old: Baseline | None, run: Run, measured: CaseRun, session_id: str) -> Baseline:
    """Return the baseline that ``measured`` makes of ``old``.

    The same commit and source add a session (the same session twice is there once, the oldest
    beyond ten go); another commit or source replaces all.
    """
    session = StoredSession(
        id=session_id,
        created_at=run.created_at,
        workers=tuple(
            StoredWorker(
                output.round, output.samples, dict(sorted(output.values.items())), output.quantiles
            )
            for output in measured.workers
        ),
        graph_events=measured.workers[0].graph_events,
    )
    fresh = Baseline(
        case=measured.case.id,
        source_hash=measured.case.source_hash,
        sha=run.side.sha,
        environment=run.environment.key,
        created_at=run.created_at,
        sessions=(session,),
        extra_metrics=measured.workers[0].extra_metrics,
    )
    if old is None or not continues(old, run, measured):
        return fresh
    others = tuple(each for each in old.sessions if each.id != session_id)
    return replace(fresh, sessions=(*others, session)[-MOST_SESSIONS:])


def continues(old: Baseline, run: Run, measured: CaseRun) -> bool:
    """Say whether ``measured`` is of ``old``'s commit and source: it adds a session then."""
    return (old.sha, old.source_hash) == (run.side.sha, measured.case.source_hash)


def diff_rows(first: Baseline, second: Baseline) -> tuple[DiffRow, ...]:
    """Return the metrics that both baselines hold, side by side."""
    before, after = _medians(first), _medians(second)
    known = {metric.name: metric for metric in (*first.extra_metrics, *METRICS.values())}
    return tuple(
        DiffRow(
            case=first.case,
            metric=name,
            unit=known[name].unit if name in known else "",
            first=before[name],
            second=after[name],
        )
        for name in before
        if name in after
    )


def _medians(baseline: Baseline) -> dict[str, float]:
    workers = [worker for session in baseline.sessions for worker in session.workers]
    names = sorted({name for worker in workers for name in worker.values})
    return {name: median([w.values[name] for w in workers if name in w.values]) for name in names}


# Pure: whether a baseline and a case may be compared at all.
def why_not_comparable(baseline: Baseline, environment: Environment, case: Case) -> Finding | None:
    """Return why the two can't be compared, or None where they can."""
    if baseline.environment != environment.key:
        return finding("other-environment", environment=baseline.environment)
    if baseline.source_hash != case.source_hash:
        return finding("source-changed")
    return None


def make_environment(facts: Mapping[str, str]) -> Environment:
    """Return the environment of ``facts``: all but notes are in the key's hash.

    The key reads ``linux-x86_64-cpu-torch2.13.0-py3.11-1a2b3c4d``, so that people know it again.
    """
    ordered = dict(sorted(facts.items()))
    digest = hashlib.sha256(json.dumps(_deciding(ordered)).encode()).hexdigest()[:8]
    device = facts.get("device_name") or "cpu"
    parts = (
        facts.get("system", "system"),
        facts.get("machine", "machine"),
        device,
        f"torch{facts.get('torch', 'none').split('+')[0]}",
        f"py{'.'.join(facts.get('python', '0.0').split('.')[:2])}",
        digest,
    )
    return Environment("-".join(_plain(part) for part in parts), ordered)


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return each deciding fact that differs, with both values; a dash where one has none."""
    first, second = _deciding(first), _deciding(second)
    return {
        name: (first.get(name, "–"), second.get(name, "–"))
        for name in sorted(first.keys() | second.keys())
        if first.get(name) != second.get(name)
    }


def _deciding(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if not name.startswith(_NOTE)}


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "_", text).lower()[:40].strip("_.") or "unknown"
