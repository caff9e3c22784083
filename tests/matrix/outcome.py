"""What perfci says of each benchmark of a project: the markers that it measured, or why not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tests.builders.project import Project, one_round
from tests.matrix.environment import Environment, with_builders

_CONFIGURATION = """\
rounds = 2
max_rounds = 2
round_time = 0.001
burst = 0.001
warmup = 0.001
timeout = 30
budget = "60s"
pattern = "bench_{pattern}.py"
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The markers of base and head; else ``refusal``, what was printed or reported instead."""

    markers: tuple[float, float] | None
    refusal: str = ""


def compare(
    project: Project,
    environment: Environment,
    cases: Iterable[str],
    *,
    pattern: str = "*",
    setting: str = "",
) -> dict[str, Outcome]:
    """Compare main with HEAD under one Python, with one more line of configuration.

    A session that was refused as a whole has the same ``Outcome`` for all its cases.
    """
    project.write("perfci.toml", f"{_CONFIGURATION.format(pattern=pattern)}{setting}\n")
    path = project.folder.parent / "report.json"
    path.unlink(missing_ok=True)
    pythons = ("--base-python", environment.python, "--head-python", environment.python)
    asked = ("compare", "main", "HEAD", *pythons, "--json", str(path))
    with one_round():
        done = project.perfci(*asked, PATH=with_builders()["PATH"]).without_traceback()
    if not path.exists():
        return dict.fromkeys(cases, Outcome(None, done.text))
    report = json.loads(path.read_text(encoding="utf-8"))
    markers = {
        row["case"]: (row["base"]["center"], row["head"]["center"])
        for row in report["results"]
        if row["metric"] == "marker" and row["base"] and row["head"]
    }
    refused = {
        case: "\n".join(
            f"{one['side']}: {one['kind']}: {one['message']}"
            for one in report["failures"]
            if one["case"] in {case, f"benchmarks/bench_{case}.py"}
        )
        for case in cases
    }
    return {case: Outcome(markers.get(case), refused[case]) for case in cases}
