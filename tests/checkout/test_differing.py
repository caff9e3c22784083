"""Which files differ between two worktrees: by git, by a build, and where nobody can say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.side_folders import SideFolders
from perfci.measure.checkout.trees import bytecode_of, differing_files
from tests.builders.project import Project

Trees = tuple[Path, Path]


class Sides:
    """A project's two newest commits, each in a worktree."""

    def __init__(self, project: Project, stack: ExitStack) -> None:
        repository = open_repository(project.folder)
        worktrees = SideFolders(project.cache, repository)
        self.resolved = [repository.resolve(rev) for rev in ("HEAD~1", "HEAD")]
        self.roots = [stack.enter_context(worktrees.side(one)) for one in self.resolved]

    def differing(self) -> frozenset[str] | None:
        one, other = self.roots
        return differing_files(one, other, (self.resolved[0].tree, self.resolved[1].tree))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_files_that_were_changed_added_and_removed_and_git_s_own(
    project: Project, stack: ExitStack
) -> None:
    project.commit("base", **{"a/changed é": "1", "removed": "", "same": "", "mode": ""})
    (project.folder / "removed").unlink()
    (project.folder / "mode").chmod(0o755)
    project.commit("head", **{"a/changed é": "2", "added": ""})
    found = Sides(project, stack).differing()
    assert found == {"a/changed é", "removed", "added", "mode", ".git"}


def test_what_a_build_left_counts_by_its_content(project: Project, stack: ExitStack) -> None:
    project.commit("base", **{"tracked": "1", ".gitignore": "built*"})
    project.commit("head", other="")
    sides = Sides(project, stack)
    for root, number in zip(sides.roots, "12", strict=True):
        (root / "built-same").write_text("1")
        (root / "built").write_text(number)
        (root / "__pycache__").mkdir()
        (root / "__pycache__" / "x.pyc").write_text(number)
    (sides.roots[1] / "tracked").write_text("built into what was committed")
    (sides.roots[0] / "built-once").touch()
    assert sides.differing() == {"other", "built", "built-once", "tracked", ".git"}


def test_a_link_that_leads_elsewhere_is_not_followed(project: Project, stack: ExitStack) -> None:
    project.commit("base", **{"data/one": "1", "data/two": "2"})
    (project.folder / "data" / "link").symlink_to("one")
    project.commit("with a link")
    assert Sides(project, stack).differing() is None
    (project.folder / "data" / "link").unlink()
    (project.folder / "data" / "link").symlink_to("two")
    project.commit("another one")
    assert Sides(project, stack).differing() is None
    project.commit("none is changed", other="")
    assert Sides(project, stack).differing() == {"other", ".git"}


def test_a_submodule_of_one_side_is_not_looked_into(project: Project, stack: ExitStack) -> None:
    inner = Project(project.folder.parent / "inner")
    inner.commit("one")
    project.commit("base")
    project.git(
        *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.folder))
    )
    project.commit("head")
    assert Sides(project, stack).differing() is None


def test_what_git_makes_of_a_file_as_it_checks_it_out_is_not_followed(
    project: Project, stack: ExitStack
) -> None:
    project.commit("base", **{"data/table.csv": "1\n"})
    project.commit("head", **{"data/.gitattributes": "*.csv text eol=crlf\n"})
    sides = Sides(project, stack)
    assert len({(root / "data/table.csv").read_bytes() for root in sides.roots}) == 2
    assert sides.differing() is None


def test_another_repository_in_a_tree_is_not_looked_into(
    project: Project, stack: ExitStack
) -> None:
    project.commit("base")
    project.commit("head", other="")
    sides = Sides(project, stack)
    for root in sides.roots:
        Project(root / "cloned").commit("one")
    assert sides.differing() is None


def test_of_a_name_with_wildcards_only_its_own_bytecode_is_found(tmp_path: Path) -> None:
    kept = tmp_path / "__pycache__"
    kept.mkdir()
    for name in ("x**", "[x]", "x"):
        (kept / f"{name}.cpython-311.pyc").touch()
    for name in ("x**", "[x]", "x"):
        found = list(bytecode_of(tmp_path / f"{name}.py"))
        assert found == [kept / f"{name}.cpython-311.pyc"]
