"""How often perfci is wrong, by simulation: false alarms, coverage, power.

    python benchmarks/statistics/simulate.py [--reports N] [--json FILE] [--only MODEL] [--part P]
    python benchmarks/statistics/simulate.py --from FILE

Prints Markdown tables and writes the raw counts. Every figure in docs/statistics.md that is
said to be simulated comes from here; the seed is fixed, so it comes out the same again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.statistics import modes_errors, percentiles, sessions, stopping_levels, usual
from benchmarks.statistics.noise import MODELS, Model
from benchmarks.statistics.paths import FAMILY, PATHS, policy_with
from benchmarks.statistics.scoring import Score
from benchmarks.statistics.tables import POWER_CELLS, THRESHOLD, tables
from perfci.record.version import VERSION

SEED = 20
ALPHA = 0.01
PROMISED = "spread 0.7 %"
"""The model that the promise of 99 % is made for; its power is simulated four times as often."""
OFTEN = ("compare, adaptive", "check, 1 session, confirmed", "check, 3 sessions, confirmed")
"""The paths that users get by default are simulated four times as often."""
POOL_REPORTS = 15

Task = tuple[Callable[..., list[dict[str, object]]], tuple[object, ...]]


def alarms(model: Model, path: str, reports: int) -> list[dict[str, object]]:
    """Reports of identical cases: each `fail` is false."""
    rng = _rng("alarms", model.name, path)
    score = Score(model.name, path, 0.0, THRESHOLD)
    policy = policy_with(THRESHOLD)
    for _ in range(reports * (4 if path in OFTEN else 1)):
        score.add(PATHS[path](model, rng, [0.0] * FAMILY, policy, ()), ALPHA)
    return [{"part": "alarms", **score.plain()}]


def power(model: Model, path: str, reports: int) -> list[dict[str, object]]:
    """One slower case among twenty; the others are drawn from reports of identical cases."""
    rng = _rng("power", model.name, path)
    run = PATHS[path]
    pool = [
        row
        for _ in range(POOL_REPORTS)
        for row in run(model, rng, [0.0] * FAMILY, policy_with(THRESHOLD), ()).rows
    ]
    found = []
    for change, threshold in POWER_CELLS[path]:
        score = Score(model.name, path, change, threshold)
        policy = policy_with(threshold)
        for _ in range(reports * (4 if model.name == PROMISED else 1)):
            others = [pool[i] for i in rng.integers(0, len(pool), FAMILY - 1)]
            score.add(run(model, rng, [float(np.log1p(change))], policy, others), ALPHA)
        found.append({"part": "power", **score.plain()})
    return found


def boundary(model: Model, reports: int) -> list[dict[str, object]]:
    """The hardest case for intervals: twenty cases slower by about the threshold, adaptive."""
    rng = _rng("boundary", model.name)
    found = []
    for change in (0.04, 0.05):
        score = Score(model.name, "compare, adaptive", change, THRESHOLD)
        for _ in range(reports):
            changes = [float(np.log1p(change))] * FAMILY
            run = PATHS["compare, adaptive"]
            score.add(run(model, rng, changes, policy_with(THRESHOLD), ()), ALPHA)
        found.append({"part": "boundary", **score.plain()})
    return found


def usual_recipe(model: Model, reports: int) -> list[dict[str, object]]:
    rng = _rng("usual", model.name)
    counts = {
        least: sum(bool(usual.alarms(model, rng, least).any()) for _ in range(reports))
        for least in (0.0, THRESHOLD)
    }
    return [
        {"part": "usual", "model": model.name, "least": least, "reports": reports, "failed": count}
        for least, count in counts.items()
    ]


def _tasks(models: Sequence[Model], reports: int, part: str) -> list[Task]:
    tasks: list[Task] = []
    for model in models:
        if part in {"", "alarms"}:
            tasks += [(alarms, (model.name, path, reports)) for path in PATHS]
        if part in {"", "power"}:
            tasks += [(power, (model.name, path, reports // 2)) for path in POWER_CELLS]
        if part in {"", "boundary"}:
            tasks.append((boundary, (model.name, reports // 8)))
        if part in {"", "usual"}:
            tasks.append((usual_recipe, (model.name, reports)))
    if part in {"", "modes"}:
        tasks += [(modes_errors.rows, (task, 10 * reports)) for task in modes_errors.TASKS]
    if part in {"", "stopping"}:
        tasks += [(stopping_levels.rows, (task, 20 * reports)) for task in stopping_levels.TASKS]
    if part in {"", "percentiles"}:
        tasks += [(percentiles.rows, (task, 2 * reports)) for task in percentiles.TASKS]
    if part in {"", "sessions"}:
        tasks += [(sessions.rows, (task, 20 * reports)) for task in sessions.TASKS]
    return tasks


def _run(task: Task) -> list[dict[str, object]]:
    function, arguments = task
    by_name = {model.name: model for model in MODELS}
    return function(*(by_name.get(a, a) if isinstance(a, str) else a for a in arguments))


def _rng(*names: str) -> np.random.Generator:
    return np.random.default_rng([SEED, *(zlib.crc32(name.encode()) for name in names)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--reports", type=int, default=100, help="reports for each cell")
    parser.add_argument("--json", type=Path, help="where the raw counts go")
    parser.add_argument("--only", default="", help="models whose names contain this")
    parser.add_argument("--part", default="", help="alarms, power, boundary, usual, modes, …")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--from", dest="kept", type=Path, help="print the tables of this file")
    given = parser.parse_args()
    if given.kept:
        print(tables(json.loads(given.kept.read_text(encoding="utf-8"))["results"]))
        return
    models = [model for model in MODELS if given.only in model.name]
    if not models:
        parser.error(f"no model's name contains {given.only!r}: {[m.name for m in MODELS]}")
    started = time.monotonic()
    with ProcessPoolExecutor(given.processes) as pool:
        done = list(pool.map(_run, _tasks(models, given.reports, given.part)))
    results = [row for rows in done for row in rows]
    print(tables(results))
    took = time.monotonic() - started
    print(f"\n{took:.0f} s with {given.processes} processes, seed {SEED}, perfci {VERSION}")
    if given.json:
        text = json.dumps(
            {"perfci": VERSION, "seed": SEED, "reports": given.reports, "results": results}
        )
        given.json.write_text(text.replace('{"part"', '\n{"part"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
