"""A branch's commits: along first parents, the newest first, with their place."""

from __future__ import annotations

import pytest

from perfci.errors import UsageError
from perfci.measure.checkout.commits import branch_of, commits
from tests.builders.project import Project
from tests.builders.repository import opened, three_commits


@pytest.fixture
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return three_commits(tmp_path_factory.mktemp("commits") / "project")


def test_a_range_leaves_out_its_older_end_and_a_branch_nothing(project: Project) -> None:
    repository = opened(project)
    newest_two = commits(repository, "main~2..main")
    assert [(one.subject, one.position) for one in newest_two] == [
        ("Say three", 2),
        ("Say two", 1),
    ]
    assert commits(repository, "main")[:2] == newest_two
    assert len(commits(repository, "main")) == 3
    assert commits(repository, "main", most=2) == newest_two
    assert newest_two[0].sha == project.git("rev-parse", "main").strip()


def test_what_was_merged_counts_as_its_merge_alone(project: Project) -> None:
    project.git("checkout", "--quiet", "-b", "feature", "HEAD~1")
    project.commit("On a branch", other="x")
    project.git("checkout", "--quiet", "main")
    project.git("merge", "--quiet", "--no-ff", "--message", "Merge feature", "feature")
    found = [(one.subject, one.position) for one in commits(opened(project), "main")]
    assert found[:2] == [("Merge feature", 3), ("Say three", 2)]
    assert "On a branch" not in dict(found)


@pytest.mark.parametrize("wanted", ["main..", "..main", "main~1...main", "main..main~1"])
def test_a_range_without_commits_is_refused(project: Project, wanted: str) -> None:
    with pytest.raises(UsageError) as refused:
        commits(opened(project), wanted)
    assert refused.value.slug in {"bad-rev", "bad-range"}


def test_a_commit_by_itself_is_recorded_for_the_default_branch(project: Project) -> None:
    project.git("branch", "feature", "HEAD~1")
    project.git("checkout", "--quiet", "--detach")
    repository = opened(project)
    found = {rev: branch_of(repository, rev) for rev in ("HEAD", "feature", "main~1", "main")}
    assert found == {"HEAD": "main", "feature": "feature", "main~1": "main", "main": "main"}
