"""From a maintainer's comment to its answer, by act: three jobs, a real repository and perfci."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders.project import Project
from tests.forges.github.server import REPOSITORY, TOKEN, FakeGitHub
from tests.workflows.test_act import Gated

pytestmark = [pytest.mark.processes, pytest.mark.slow]


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    fake = FakeGitHub()
    yield fake
    fake.close()


def test_a_maintainers_comment_has_its_cases_measured_and_is_answered(
    project: Project, github: FakeGitHub
) -> None:
    gated = Gated(project, github, "--with", "on-demand")
    github.members["Ada"] = "write"
    github.pulls[7].source = "stranger/models"
    asked = github.comment('/perfci -k "counting and not $(touch /tmp/x)"', "stranger")

    def run() -> str:
        owner, name = REPOSITORY.split("/")
        event = {
            "action": "created",
            "issue": {"number": 7, "pull_request": {"url": ""}},
            "comment": asked,
            "repository": {"name": name, "full_name": REPOSITORY, "owner": {"login": owner}},
        }
        done = gated.act.run(
            *("perfci-on-demand.yml", "issue_comment", event),
            token=TOKEN,
            GITHUB_REPOSITORY=REPOSITORY,
            GITHUB_API_URL=github.url,
        )
        return done.stdout

    said = run()
    assert "Measure" not in said, said[-4000:]
    assert github.wrote() == []

    asked = github.comment('/perfci -k "counting and not x;id"', "Ada")
    said = run()
    answer = github.comments[-1]["body"]
    assert answer.startswith(f"<!-- perfci on demand {asked['id']} -->"), said[-4000:]
    assert "### ❌ perfci: " in answer, said[-4000:]
    assert "counting" in answer
    assert "steady" not in answer
    assert github.reactions == [(asked["id"], "eyes")]
    assert github.checks == []
    assert github.violations == []
