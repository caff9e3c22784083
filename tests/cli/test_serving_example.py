"""``examples/serving`` runs: its server's tokens and its model's are counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.builders.project import QUICK, Project, rows

pytestmark = [pytest.mark.processes, pytest.mark.torch]
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "serving"


def test_the_example_serves_tokens_to_its_clients(project: Project) -> None:
    shutil.copytree(EXAMPLE, project.folder, dirs_exist_ok=True)
    one = QUICK.replace("rounds = 5", "rounds = 2").replace("max_rounds = 9", "max_rounds = 2")
    project.write("pyproject.toml", one.replace("timeout = 20", "timeout = 60"))
    project.commit("example")
    report = project.report("run", "-k", "concurrency=4 and prompt=16 or model")
    assert not report["failures"]
    for case in ("served[prompt=16,concurrency=4]", "model"):
        found = rows(report, case)
        assert found["tokens_per_request"]["head"]["center"] == 16
        assert found["time_to_first_token"]["head"]["center"] > 0
