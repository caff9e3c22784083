"""How often perfci is wrong, by simulation: false alarms, coverage, power.

    python -m benchmarks.statistics.simulate [--reports N] [--json FILE] [--only MODEL] [--part P]
    python -m benchmarks.statistics.simulate --from FILE [--write FOLDER]

Prints Markdown tables and writes the raw counts. Every simulated figure in docs/statistics.md and
docs/results/ comes from here; the seed is fixed, so it comes out the same again. ``--write``
puts the tables into a folder's pages, between their marks ``<!-- simulated: NAME -->``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.statistics import false_alarms, power, thresholds
from benchmarks.statistics.noise import MODELS, Model
from benchmarks.statistics.paths import PATHS
from benchmarks.statistics.scoring import SEED
from benchmarks.statistics.tables import rewritten, tables
from perfci.version import VERSION

REPORTS = 100
_BY_NAME = {model.name: model for model in MODELS}

Task = tuple[str, Callable[..., list[dict[str, Any]]], tuple[object, ...]]
"""The part it is of, and what to call with what."""


def _tasks(models: Sequence[Model], reports: int, part: str) -> list[Task]:
    tasks = [task for model in models for task in _tasks_of(model, reports)]
    return [task for task in tasks if part in {"", task[0]}]


def _tasks_of(model: Model, reports: int) -> list[Task]:
    name = model.name
    tasks: list[Task] = [("alarms", false_alarms.rows, (name, path, reports)) for path in PATHS]
    tasks += [("power", power.rows, (name, reports))]
    if not model.offset:
        tasks += [
            ("boundary", thresholds.boundary, (name, path, reports // 4))
            for path in (thresholds.COMPARE, thresholds.CHECK)
        ]
    if name in thresholds.SCALED:
        tasks += [
            ("spreads", thresholds.spreads, (name, factor, reports // 5))
            for factor in thresholds.IN_SPREADS
        ]
    return tasks


def _run(task: Task) -> list[dict[str, Any]]:
    """Models travel to the other processes by their names: lambdas can't."""
    _, function, arguments = task
    return function(*(_BY_NAME.get(a, a) if isinstance(a, str) else a for a in arguments))


def _all_of(tasks: Sequence[Task], processes: int) -> list[dict[str, Any]]:
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(_run, task) for task in tasks]
        for count, _ in enumerate(as_completed(futures), start=1):
            print(f"\r{count} of {len(tasks)} parts", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return [row for future in futures for row in future.result()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--reports", type=int, default=REPORTS, help="reports for each cell")
    parser.add_argument("--json", type=Path, help="where the raw counts go")
    parser.add_argument(
        "--only", default="", help="models whose names contain one of these, by semicolon"
    )
    parser.add_argument("--part", default="", help="alarms, power, boundary, spreads")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--from", dest="kept", type=Path, help="print the tables of these raw counts"
    )
    parser.add_argument("--write", type=Path, help="put the tables into this folder's pages")
    given = parser.parse_args()
    parts = given.only.split(";")
    models = [model for model in MODELS if any(part in model.name for part in parts)]
    if not models:
        parser.error(f"no model's name contains {given.only!r}: {[m.name for m in MODELS]}")
    if given.kept:
        results = json.loads(given.kept.read_text(encoding="utf-8"))["results"]
    else:
        results = _simulated(models, given)
    made = tables(results)
    for name, text in made.items():
        print(f"### {name}\n\n{text}\n")
    if given.write:
        for page in sorted(given.write.rglob("*.md")):
            text = page.read_text(encoding="utf-8")
            page.write_text(rewritten(text, made), encoding="utf-8")


def _simulated(models: Sequence[Model], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Simulate, and write the raw counts, a line each."""
    results = _all_of(_tasks(models, given.reports, given.part), given.processes)
    spent = os.times()
    core_s = round(spent.children_user + spent.children_system)
    about = {"perfci": VERSION, "seed": SEED, "reports": given.reports, "core_s": core_s}
    print(about)
    if given.json:
        text = json.dumps(about | {"results": results}, ensure_ascii=False)
        given.json.write_text(text.replace('{"part"', '\n{"part"') + "\n", encoding="utf-8")
    return results


if __name__ == "__main__":
    main()
