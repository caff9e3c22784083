"""perfci's own gate is written by the templates that users get.

pytest tests/workflows/test_own_workflows.py --refresh-golden
"""

from __future__ import annotations

import pytest

from perfci.commands.workflows import WorkflowChoices, render_workflow
from tests.workflows.examples import ROOT
from tests.workflows.locking import LOCK

# No baselines and no nights: on machines of GitHub's that change from job to job, a stored
# baseline is seldom comparable with anything.
OWN = ("perfci.yml", "perfci-report.yml")
CHOICES = WorkflowChoices(
    branch="main",
    baselines="baselines",
    python="3.12",
    runner=("ubuntu-latest",),
    shards=1,
    install=("python -m pip install -c constraints.txt .",),
    report_install=(
        f"python -m pip install --require-hashes --only-binary :all: -r {LOCK.relative_to(ROOT)}",
        "python -m pip install --no-deps --no-build-isolation .",
    ),
    report_python="3.12",
)


@pytest.mark.parametrize("name", OWN)
def test_perfcis_own_workflow_is_the_one_that_the_template_gives(
    name: str, request: pytest.FixtureRequest
) -> None:
    file = ROOT / ".github" / "workflows" / name
    text = render_workflow(name, CHOICES)
    if request.config.getoption("--refresh-golden"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text
