"""What a rev is found to mean, and what is said where it means nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.measure.checkout.git import open_repository
from tests.builders.project import Project
from tests.builders.repository import opened, state, three_commits


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return three_commits(tmp_path / "project")


def tree_files(project: Project, tree: str) -> set[str]:
    return set(project.git("ls-tree", "-r", "--name-only", tree).split())


@pytest.mark.parametrize(
    "rev", ["main", "HEAD", "v1", "refs/heads/main", "HEAD~0", ":/Say three", "@{0}"]
)
def test_every_way_to_write_a_rev_gives_its_commit(project: Project, rev: str) -> None:
    project.git("tag", "-a", "v1", "-m", "annotated")
    resolved = opened(project).resolve(rev)
    assert resolved.commit == resolved.sha == project.git("rev-parse", "HEAD").strip()
    assert resolved.tree == project.git("rev-parse", "HEAD^{tree}").strip()
    assert (resolved.rev, resolved.subject, resolved.dirty) == (rev, "Say three", False)
    assert resolved.sha.startswith(resolved.short)


def test_a_clean_working_tree_is_heads_own_commit(project: Project) -> None:
    resolved = opened(project).resolve(".")
    assert resolved.sha == resolved.commit == project.git("rev-parse", "HEAD").strip()
    assert not resolved.dirty


def test_the_working_tree_holds_staged_unstaged_untracked_and_deleted_but_not_ignored(
    project: Project,
) -> None:
    project.commit("more", **{".gitignore": "ignored\n", "gone": "x", "kept": "x"})
    project.write("value", "unstaged")
    project.write("staged", "x")
    project.git("add", "staged")
    project.write("new/untracked", "x")
    project.write("ignored", "x")
    (project.folder / "gone").unlink()
    before = state(project)

    resolved = opened(project).resolve(".")

    assert resolved.dirty
    head = project.git("rev-parse", "HEAD").strip()
    assert resolved.sha == f"{head}+{resolved.tree[:10]}"
    files = tree_files(project, resolved.tree)
    assert files == {".gitignore", "kept", "new/untracked", "pyproject.toml", "staged", "value"}
    assert project.git("show", f"{resolved.commit}:value") == "unstaged"
    assert project.git("rev-parse", f"{resolved.commit}^").strip() == head
    assert state(project) == before


@pytest.mark.parametrize("report", ["report.json", "comment-fail.md"])
def test_a_report_that_perfci_wrote_is_no_change(project: Project, report: str) -> None:
    golden = Path(__file__).parent.parent / "data" / "golden" / report
    project.write(f"out/*{report}", golden.read_text(encoding="utf-8"))
    assert not opened(project).resolve(".").dirty
    assert not opened(project).is_dirty()
    project.write(f"out/other-{report}", "{}")
    assert opened(project).is_dirty()
    files = tree_files(project, opened(project).resolve(".").tree)
    assert [name for name in files if "out/" in name] == [f"out/other-{report}"]


def test_a_change_in_the_same_instant_as_the_last_git_add_is_seen(project: Project) -> None:
    project.git("config", "core.trustCtime", "false")
    project.git("config", "core.checkStat", "minimal")
    instant = (1_600_000_000, 1_600_000_000)
    file = project.write("value", "four")
    os.utime(file, instant)
    project.commit("Say four")
    os.utime(project.folder / ".git" / "index", instant)
    project.write("value", "five")
    os.utime(file, instant)
    assert opened(project).resolve(".").dirty


def test_unresolved_conflicts_are_refused_and_left_alone(project: Project) -> None:
    project.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    project.commit("Say other", value="other")
    with pytest.raises(subprocess.CalledProcessError):
        project.git("merge", "main")
    before = state(project)
    with pytest.raises(UsageError, match="unresolved merge conflicts"):
        opened(project).resolve(".")
    assert state(project) == before
    assert opened(project).resolve("HEAD").subject == "Say other"


@pytest.mark.parametrize("rev", ["--all", "-n1", "--output=/tmp/x", "", "a\0b", "a\nb"])
def test_a_rev_that_looks_like_an_option_never_reaches_git(project: Project, rev: str) -> None:
    with pytest.raises(UsageError) as caught:
        opened(project).resolve(rev)
    assert caught.value.slug == "bad-rev"


@pytest.mark.parametrize("rev", ["HEAD..main", "HEAD...main", "HEAD^!"])
def test_a_range_is_no_commit(project: Project, rev: str) -> None:
    project.commit("another", **{"other.py": ""})
    with pytest.raises(UsageError, match="is a range of commits") as caught:
        opened(project).resolve(rev)
    assert caught.value.slug == "bad-rev"


def test_a_name_of_a_branch_and_a_tag_is_refused(project: Project) -> None:
    project.git("branch", "both", "HEAD~1")
    project.git("tag", "both")
    with pytest.raises(UsageError, match="more than one thing"):
        opened(project).resolve("both")
    assert opened(project).resolve("refs/heads/both").subject == "Say two"


def test_a_shallow_clone_is_told_how_to_fetch_the_rest(project: Project, tmp_path: Path) -> None:
    old = project.git("rev-parse", "HEAD~2").strip()
    url = f"file://{project.folder}"
    project.git("clone", "--quiet", "--depth=1", url, str(tmp_path / "shallow"))
    with pytest.raises(UsageError, match="fetch-depth: 0"):
        open_repository(tmp_path / "shallow").resolve(old)
    with pytest.raises(UsageError, match="--unshallow`"):
        open_repository(tmp_path / "shallow").resolve("HEAD~1")


def test_the_advice_on_a_branch_that_a_shallow_clone_lacks_fetches_it(
    project: Project, tmp_path: Path
) -> None:
    project.git("branch", "other", "HEAD~1")
    clone = tmp_path / "shallow"
    project.git("clone", "--quiet", "--depth=1", f"file://{project.folder}", str(clone))
    with pytest.raises(UsageError) as refused:
        open_repository(clone).resolve("other")
    command = str(refused.value).partition("`git ")[2].partition("`")[0]
    project.git("-C", str(clone), *command.split())
    assert open_repository(clone).resolve("other").sha


def test_merge_base_and_default_base(project: Project, tmp_path: Path) -> None:
    fork = project.git("rev-parse", "HEAD~1").strip()
    project.git("checkout", "--quiet", "-b", "topic", "HEAD~1")
    project.commit("Say topic", value="topic")
    repository = opened(project)
    assert repository.merge_base("main", "topic") == fork
    assert repository.default_base() == "main"
    project.git("checkout", "--quiet", "--orphan", "unrelated")
    project.commit("Alone")
    assert repository.merge_base("main", "unrelated") is None
    project.git("clone", "--quiet", str(project.folder), str(tmp_path / "clone"))
    clone = open_repository(tmp_path / "clone")
    assert clone.default_base() == "origin/unrelated"


def test_the_variables_of_a_hook_lead_nowhere_else(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = three_commits(tmp_path / "other")
    other.commit("Say other", value="other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    repository = opened(project)
    assert repository.root == project.folder
    assert repository.resolve(".").subject == "Say three"
