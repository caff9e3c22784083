"""Listing what a side's benchmark files hold."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from perfci.bench.definition import Benchmark
from perfci.record.case import Case, Discovery, Failure
from perfci.record.worker import SavedModel, WorkOrder
from perfci.worker.facts import side_facts
from perfci.worker.loading import benchmarks_in, load, source_hash, where_it_failed


def discover(order: WorkOrder) -> dict[str, Any]:
    """Return a ``Discovery`` as a dict; a file that fails leaves the others alone."""
    cases: list[Case] = []
    failures: list[Failure] = []
    for file in order.benchmark_files:
        try:
            found = benchmarks_in(load(file))
            cases += [case for benchmark in found for case in _cases(benchmark, file, order)]
        except (Exception, SystemExit) as error:  # noqa: BLE001 (user code: recorded, not hidden)
            failures.append(
                Failure(
                    case=_relative(file, order),
                    side=order.side,
                    stage="import",
                    kind=type(error).__name__,
                    message=where_it_failed(error, order.root),
                )
            )
    cases += [case for saved in order.saved for case in _saved_cases(saved)]
    unique, twice = _without_twins(cases, order)
    return asdict(Discovery(tuple(unique), tuple(failures + twice), side_facts()))


def _cases(benchmark: Benchmark, file: str, order: WorkOrder) -> list[Case]:
    digest = source_hash(file)
    return [
        Case(
            id=point.id,
            benchmark=benchmark.name,
            axes=dict(point.labels),
            file=_relative(file, order),
            line=benchmark.line,
            source_hash=digest,
            tags=benchmark.tags,
            skip=benchmark.skip_reason(point),
            timeout=benchmark.timeout,
            thresholds=dict(benchmark.thresholds),
            metrics=benchmark.metrics,
            compiled=point.labels.get("mode", "eager") != "eager",
        )
        for point in benchmark.points()
    ]


def _saved_cases(saved: SavedModel) -> list[Case]:
    files = [path for path in (saved.model_path, saved.inputs_path) if Path(path).is_file()]
    digest = "-".join(source_hash(path)[:8] for path in files) or "missing"
    return [
        Case(
            id=f"{saved.name}[mode={mode}]",
            benchmark=saved.name,
            axes={"mode": mode},
            file=Path(saved.model_path).name,
            line=0,
            source_hash=digest,
            compiled=mode != "eager",
        )
        for mode in saved.modes
    ]


def _without_twins(cases: list[Case], order: WorkOrder) -> tuple[list[Case], list[Failure]]:
    """Two benchmarks with one id can't be told apart: neither is measured."""
    places: dict[str, list[str]] = {}
    for case in cases:
        places.setdefault(case.id, []).append(f"{case.file}:{case.line}")
    failures = [
        Failure(
            case=identity,
            side=order.side,
            stage="discovery",
            kind="duplicate_id",
            message=f"two benchmarks are called `{identity}`: {' and '.join(found)}; "
            "give one of them another name: @perfci.benchmark(name=...)",
        )
        for identity, found in places.items()
        if len(found) > 1
    ]
    return [case for case in cases if len(places[case.id]) == 1], failures


def _relative(file: str, order: WorkOrder) -> str:
    return Path(file).relative_to(order.benchmark_root).as_posix()
