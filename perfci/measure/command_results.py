"""Files of results that commands wrote, read by an importer, as metrics of their case.

Each result in a file is a metric ``NAME.METRIC`` of the case: one run gives a whole suite.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace

from perfci.errors import UsageError
from perfci.history.importers import read_foreign, visible
from perfci.model.case import Gate, Metric
from perfci.model.run import Point, RecordedRun
from perfci.model.worker import Measurement, ResultsFile
from perfci.stats.quantile import median

_MAIN = ("device_time_p50", "device_time_mean", "latency_p50", "latency_mean", "throughput")
"""Metrics that can stand for a result, the best first. Only the one that stands for it may gate."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.\-]+")
"""Matches what the name of a metric can't have."""
_LONGEST = 100
"""Characters of a metric's longest name."""


def with_results(raw: Measurement) -> Measurement:
    """Return ``raw`` with the metrics of its files, each as the median over the worker's runs.

    Raises UsageError and DamagedFile for a file without results of its format.
    """
    if not raw.results:
        return raw
    runs = [_run(file) for file in raw.results]
    points: dict[tuple[str, str], list[Point]] = {}
    for point in (point for run in runs for point in run.points):
        points.setdefault((point.case, point.metric), []).append(point)
    names = _names(points, (case for run in runs for case in run.failed))
    main = _main(points)
    metrics = (
        _metric(names[key], of_key[0], raw.results[0], main=key in main)
        for key, of_key in points.items()
    )
    values = {names[key]: median([p.value for p in of_key]) for key, of_key in points.items()}
    failed = {f"{case}: {why}" for run in runs for case, why in run.failed.items()}
    return replace(
        raw,
        values={**raw.values, **values},
        extra_metrics=(*raw.extra_metrics, *metrics),
        warnings=(*raw.warnings, *sorted(failed)),
        results=(),
    )


def _run(file: ResultsFile) -> RecordedRun:
    content = file.content.encode("latin-1")
    foreign = read_foreign(content, file.name, file.format)
    run = next(iter(foreign.runs), None)
    if run is None or not (run.points or run.failed):
        skipped = "".join(f"; {left_out.what}: {left_out.why}" for left_out in foreign.skipped[:3])
        raise UsageError(
            "no-results", f"{visible(file.name, 300)} holds no result{skipped}", "Run the command."
        )
    return run


def _metric(name: str, point: Point, file: ResultsFile, *, main: bool) -> Metric:
    gate: Gate = file.gate if main else "info"
    return Metric(name, point.unit, "per_worker", file.threshold, gate, point.direction)


def _main(points: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the metric that stands for each case: one of ``_MAIN``, or the only one it has."""
    of_case: dict[str, list[str]] = {}
    for case, metric in points:
        of_case.setdefault(case, []).append(metric)
    main = set()
    for case, metrics in of_case.items():
        usual = next((metric for metric in _MAIN if metric in metrics), "")
        if usual or len(metrics) == 1:
            main.add((case, usual or metrics[0]))
    return main


def _names(points: Iterable[tuple[str, str]], failed: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return each result's name as a metric: its case's name, and the metric.

    If all cases are of one program, the program is left out.
    """
    keys = sorted(points)
    programs = {case.partition("::")[0] for case in (*(case for case, _ in keys), *failed)}
    names: dict[tuple[str, str], str] = {}
    taken = set()
    for case, metric in keys:
        shown = case.partition("::")[2] if len(programs) == 1 and "::" in case else case
        name, _, axes = shown.removesuffix("]").partition("[")
        whole = (name, *filter(None, axes.split(",")), metric)
        text = ".".join(_UNFIT.sub("_", part.replace("=", "-")).strip("_.-") for part in whole)
        if len(text) > _LONGEST or text in taken:
            text = f"{text[: _LONGEST - 9]}-{hashlib.sha256(repr(whole).encode()).hexdigest()[:8]}"
        names[case, metric] = text
        taken.add(text)
    return names
