"""perfci's own gate is written by the templates that users get.

pytest tests/workflows/test_own_workflows.py --refresh-golden
"""

from __future__ import annotations

import pytest

from perfci.commands.workflows import CiOptions, WorkflowChoices, render_workflow
from tests.workflows.examples import ROOT

# No baselines and no nights: on machines of GitHub's that change from job to job, a stored
# baseline is seldom comparable with anything.
OWN = ("perfci.yml", "perfci-report.yml")
CHOICES = WorkflowChoices(
    CiOptions(
        python="3.12",
        runner=("ubuntu-latest",),
        more=("baseline",),
        # of the pull request's head where it is measured, of `main` where that is posted. GitHub's
        # own `$/` would be of the merge
        action="./ # zizmor: ignore[self-repository] what is checked out",
    ),
    branch="main",
    baselines="baselines",
    project_install=("python -m pip install -c constraints.txt .",),
    report_install=(),
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
