"""What perfci says of each benchmark of a project: the markers that it measured, or why not."""

from __future__ import annotations

import json
import re
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
_ADVICE = re.compile(r"Set (.*?) in \[tool\.perfci\]")
_SETTING = re.compile(r"\b\w+ = \[.*?\](?= and \w+ = |$)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The markers of base and head; else ``refusal``, what was printed or reported instead."""

    markers: tuple[float, float] | None
    refusal: str = ""

    @property
    def setting(self) -> str:
        """The lines to put into the configuration, as they stand in the message; or nothing."""
        advice = _ADVICE.search(self.refusal)
        return "\n".join(_SETTING.findall(advice[1])) if advice else ""


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
