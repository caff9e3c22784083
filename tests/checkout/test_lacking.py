"""A clone that lacks something: errors have git's own words, and say what to fetch or install."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.errors import OutsideError, UsageError
from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.side_folders import SideFolders
from perfci.measure.machine.isolation import git_secrets
from tests.builders.project import Project

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 3\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.commit("old", **{"lib.py": "OLD = 1\n"})
    project.git("branch", "old")
    project.commit("new", **{"lib.py": "NEW = 1\n"})
    return project


def notes_of(folder: Path, rev: str) -> list[str]:
    """Check a side out, and return the notes."""
    repository = open_repository(folder)
    sides = SideFolders(folder.parent / "cache", repository)
    with sides.side(repository.resolve(rev)):
        return sides.notes


@pytest.mark.parametrize("lost", ["old", "old^{tree}", "old:lib.py"])
def test_a_missing_object_is_told_with_gits_words(project: Project, lost: str) -> None:
    sha = project.git("rev-parse", lost).strip()
    (project.folder / ".git" / "objects" / sha[:2] / sha[2:]).unlink()
    with pytest.raises(OutsideError) as caught:
        notes_of(project.folder, "old")
    assert caught.value.slug == "objects-missing"
    assert sha in caught.value.message or "object info" in caught.value.message
    assert "`git fsck`" in caught.value.advice


@pytest.mark.parametrize("rev", ["nothing", "1" * 40])
def test_what_no_clone_has_to_have_is_no_damage(project: Project, rev: str) -> None:
    with pytest.raises(UsageError, match="is not a commit"):
        open_repository(project.folder).resolve(rev)


@pytest.mark.parametrize("left_out", ["blob:none", "tree:0"])
def test_a_partial_clone_without_its_remote_is_told_what_to_fetch(
    project: Project, tmp_path: Path, left_out: str
) -> None:
    project.git("config", "uploadpack.allowFilter", "true")
    clone, url = tmp_path / "clone", f"file://{project.folder}"
    project.git("clone", "--quiet", f"--filter={left_out}", url, str(clone))
    project.folder.rename(tmp_path / "gone")
    with pytest.raises(OutsideError) as caught:
        notes_of(clone, "origin/old")
    assert caught.value.slug == "partial-clone"
    assert "promisor remote" in caught.value.message
    assert "`git fetch --refetch --no-filter`" in caught.value.advice


@pytest.mark.parametrize(
    "settings",
    [
        {"smudge": "git-lfs smudge -- %f", "process": "git-lfs filter-process"},
        {"smudge": "false"},
    ],
)
def test_a_filter_that_fails_is_told_what_to_install(
    project: Project, settings: dict[str, str]
) -> None:
    project.commit("data", **{".gitattributes": "*.bin filter=lfs -text\n", "x.bin": POINTER})
    for name, command in {**settings, "required": "true"}.items():
        project.git("config", f"filter.lfs.{name}", command)
    with pytest.raises(OutsideError) as caught:
        notes_of(project.folder, "HEAD")
    assert caught.value.slug == "filter-failed"
    assert "`git lfs install`" in caught.value.advice


def test_pointers_that_no_filter_replaced_are_named(project: Project) -> None:
    attributes = "*.bin filter=lfs -text\n"
    files = {"data/.gitattributes": attributes, "data/x.bin": POINTER, "data/y.bin": "content"}
    project.commit("data", **files, **{"other.bin": POINTER})
    (note,) = notes_of(project.folder, "HEAD")
    assert "1 file hold" not in note
    assert "data/x.bin" in note
    assert "`git lfs install`" in note
    assert notes_of(project.folder, "old") == []


def test_credentials_of_a_repository_that_git_refuses_are_not_called_well(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(OutsideError, match="dubious ownership"):
        git_secrets(project.folder)
