"""The discovery of a side: the cases of its benchmark files, failures, and facts."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from perfci import metrics
from perfci.api.definition import Benchmark
from perfci.errors import UsageError
from perfci.model.case import Case, Failure
from perfci.model.worker import Discovery, FileImports, WorkOrder
from perfci.suites import SuiteForm, form_of
from perfci.worker.devices import DeviceKind, cuda, kinds, registered
from perfci.worker.imports import ImportRecord, modules
from perfci.worker.loading import benchmarks_of, forget_neighbours
from perfci.worker.own_packages import installed_copies, other_sources, python_folders
from perfci.worker.protocol import kind_of, where_it_failed
from perfci.worker.source_hash import source_hash

_COMPILING_AXES = ("mode", "backend")
"""Axes whose labels other than ``eager`` compile."""


def discover(order: WorkOrder) -> dict[str, Any]:
    """Return a ``Discovery`` as a dict. A file that fails doesn't affect the other files.

    Raises UsageError for a broken plug-in.
    """
    cases: list[Case] = []
    failures: list[Failure] = []
    added, others = metrics.registered(), registered()
    record = ImportRecord((order.root,))
    imports: dict[str, FileImports] = {}
    before = ""
    for file in order.benchmark_files:
        folder, form = str(Path(file).parent), form_of(file, order.root)
        if before not in {"", folder, *order.python_path}:
            forget_neighbours(before)
        before = "" if form else folder
        try:
            with record.during(file):
                benchmarks = benchmarks_of(file, order, form)
            imports[_relative(file, order)] = _with_tool(record.of(file), form)
            cases += [case for benchmark in benchmarks for case in _cases(benchmark, file, order)]
        except BaseException as error:  # noqa: BLE001 (user code: recorded, not hidden)
            failures.append(
                Failure(
                    case=_relative(file, order),
                    side=order.side,
                    stage="import",
                    kind=kind_of(error),
                    message=where_it_failed(error, (order.root,)),
                )
            )
    unique, duplicates = _without_duplicates(cases, order)
    return asdict(
        Discovery(
            cases=tuple(unique),
            failures=tuple(failures + duplicates),
            facts=side_facts(kinds(others)),
            copies=installed_copies(order.project, order.checkout) if order.checkout else (),
            pythons=python_folders(),
            sources=other_sources(order.project, order.root, order.checkout),
            devices=others,
            metrics=added,
            imports=imports,
            modules=modules(),
            cards=cuda.cards(),
        )
    )


def _with_tool(imports: FileImports, form: SuiteForm | None) -> FileImports:
    """Return a file's imports with those of its suite's tool put first."""
    packages = form.TOOL if form else ()
    tool = (name for name in sys.modules if name.partition(".")[0] in packages)
    return replace(imports, modules=tuple(dict.fromkeys((*tool, *imports.modules))))


def _cases(benchmark: Benchmark, file: str, order: WorkOrder) -> list[Case]:
    digest = source_hash((file, *benchmark.sources))
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
            # whether a case compiles is known only once it is built; until then, guess by its axes
            compiled=not benchmark.hands_over
            and any(point.labels.get(axis, "eager") != "eager" for axis in _COMPILING_AXES),
        )
        for point in benchmark.points()
    ]


def _without_duplicates(cases: list[Case], order: WorkOrder) -> tuple[list[Case], list[Failure]]:
    """Return the cases whose id is unique, and a failure for each id that several cases share."""
    places: dict[str, list[str]] = {}
    for case in cases:
        places.setdefault(case.id, []).append(f"{case.file}:{case.line}")
    failures = [
        Failure(
            case=identity,
            side=order.side,
            stage="discovery",
            kind="duplicate_id",
            message=f"two benchmarks are called `{identity}`: {' and '.join(files)}\n"
            "Give one of them another name: the function's, or @perfci.benchmark(name=...).",
        )
        for identity, files in places.items()
        if len(files) > 1
    ]
    return [case for case in cases if len(places[case.id]) == 1], failures


def _relative(file: str, order: WorkOrder) -> str:
    """Return the path relative to the side's tree, which is the same on both sides."""
    return Path(file).relative_to(order.root).as_posix()


# Facts of this side's Python, torch and device on which speed depends.


def side_facts(kinds: Sequence[DeviceKind]) -> dict[str, str]:
    """Return the facts as text. Raises UsageError if a kind of device breaks.

    torch is imported for its facts only if the machine has a device of these ``kinds``. On such a
    machine, any benchmark may import torch in its set-up, and without
    the facts two different cards would look alike.
    """
    facts = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
    }
    torch: Any = sys.modules.get("torch")
    if torch is None and any(kind.present() for kind in kinds):
        with contextlib.suppress(Exception):  # a benchmark that needs it fails with the reason
            torch = importlib.import_module("torch")
    if torch is not None:
        facts["torch"] = str(torch.__version__)
        facts["torch_threads"] = str(torch.get_num_threads())
    else:
        try:
            facts["torch"] = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            facts["torch"] = "none"
    for kind in reversed(kinds):  # if two kinds have a fact of one name, the first kind's wins
        facts |= _facts_of(kind)
    return facts


def _facts_of(kind: DeviceKind) -> Mapping[str, str]:
    try:
        return {name: str(value) for name, value in kind.facts().items()}
    except Exception as error:
        raise UsageError(
            "broken-plugin",
            f"the device `{kind.__name__}` can't be used: its facts() ended in "
            f"{type(error).__name__}: {error}",
            "Mend it, or uninstall its distribution.",
        ) from error
