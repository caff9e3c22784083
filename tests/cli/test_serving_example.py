"""``examples/serving`` compared: its tokens are counted, and time planted in a phase is found."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.torch]
OF_SERVER = "prompt[0] != 1"
"""True in the server, whose prompts are words. The other case's prompt is a list of ones."""
PREFILL = "        new, place = torch.tensor([prompt]), 0\n"
DECODE = "            new = torch.tensor([[token]])\n"
PLANTED = {PREFILL: f"0.2 if {OF_SERVER} else 0.0", DECODE: f"0.0 if {OF_SERVER} else 0.02"}
"""After which line of the model how long it sleeps."""
EXAMPLE = Path(__file__).parents[2] / "examples" / "serving"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One session: the server's prefill is slower on head, and the other case's decode."""
    project = Project(tmp_path_factory.mktemp("serving") / "project")
    shutil.copytree(EXAMPLE, project.folder, dirs_exist_ok=True)
    once = QUICK.replace("rounds = 5", "rounds = 2").replace("max_rounds = 9", "max_rounds = 2")
    project.write(
        "pyproject.toml", once.replace("timeout = 20", "timeout = 60").replace("60s", "300s")
    )
    project.commit("example")
    model = (EXAMPLE / "model.py").read_text(encoding="utf-8")
    for line, seconds in PLANTED.items():
        assert line in model
        indent = " " * (len(line) - len(line.lstrip()))
        slower = f'{line}{indent}__import__("time").sleep({seconds})\n'
        model = model.replace(line, slower)
    project.write("model.py", model)
    project.commit("slower")
    return project.report("compare", "HEAD~1", "HEAD", "-k", "concurrency=4 and prompt=16 or model")


@pytest.mark.parametrize(
    ("case", "metric", "least"),
    [
        ("served[prompt=16,concurrency=4]", "time_to_first_token", 0.1),
        ("model", "inter_token_latency_p50", 0.01),
    ],
)
def test_time_planted_in_a_phase_is_found_in_that_phases_row(
    report: dict[str, Any], case: str, metric: str, least: float
) -> None:
    assert not report["failures"]
    found = rows(report, case)
    for side in ("base", "head"):
        assert found["tokens_per_request"][side]["center"] == 16
    assert found[metric]["head"]["center"] - found[metric]["base"]["center"] > least
