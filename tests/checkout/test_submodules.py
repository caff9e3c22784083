"""Submodules of a side's tree: checked out from the user's clone, and nothing of it is changed."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from perfci.errors import MeasureError
from perfci.measure.checkout.build import BuildRecipe
from perfci.measure.checkout.git import open_repository
from perfci.measure.checkout.side_folders import SideFolders
from perfci.measure.checkout.worktrees import SUBMODULE_COMMIT_MISSING, uncommitted, written_since
from tests.builders.project import Project

LOCAL = ("-c", "protocol.file.allow=always")
OUTER, INNER = "vendor/paint", "vendor/paint/deep/ink"


@pytest.fixture
def moved(project: Project) -> Project:
    """A project with a submodule in a submodule; both move between its two commits."""
    ink = Project(project.folder.parent / "ink")
    paint = Project(project.folder.parent / "paint")
    ink.commit("1", **{"ink.py": "VALUE = 1\n"})
    paint.git(*LOCAL, "submodule", "--quiet", "add", "--name", "ink", str(ink.folder), "deep/ink")
    paint.commit("1", **{"paint.py": "VALUE = 1\n", "same.py": "", ".gitignore": "built.py\n"})
    paint.git("tag", "v1")
    project.git(*LOCAL, "submodule", "--quiet", "add", str(paint.folder), OUTER)
    project.git(*LOCAL, "submodule", "--quiet", "update", "--init", "--recursive")
    project.commit("base")
    ink.commit("2", **{"ink.py": "VALUE = 2\n"})
    paint.git("-C", "deep/ink", "pull", "--quiet")
    paint.commit("2", **{"paint.py": "VALUE = 2\n"})
    project.git("-C", OUTER, "pull", "--quiet", "--no-recurse-submodules")
    project.git(*LOCAL, "-C", OUTER, "submodule", "--quiet", "update", "--recursive")
    project.commit("head", other="")
    for origin in (ink, paint):
        shutil.rmtree(origin.folder)  # what is not in the clone can't be had
    return project


class Sides:
    """The project's commits, each in a worktree of its own."""

    def __init__(
        self, project: Project, stack: ExitStack, build: tuple[str, ...] = (), *, rev: str = "."
    ) -> None:
        repository = open_repository(project.folder)
        self.worktrees = SideFolders(project.cache, repository)
        self.resolved = [repository.resolve(rev) for rev in ("HEAD~1", rev)]
        self.roots = [
            stack.enter_context(self.worktrees.side(one, BuildRecipe(build=build)))
            for one in self.resolved
        ]

    def read(self, path: str) -> list[str]:
        return [(root / path).read_text() for root in self.roots]


def configured(project: Project) -> str:
    """Return what git keeps in the user's clone, of its submodules, too."""
    worktrees = project.git("worktree", "list")
    files = sorted(project.folder.joinpath(".git").rglob("config"))
    return worktrees + project.git("status") + "".join(file.read_text() for file in files)


def test_each_side_has_its_own_commits_submodules(moved: Project) -> None:
    before = configured(moved)
    with ExitStack() as stack:
        sides = Sides(moved, stack)
        assert sides.read(f"{OUTER}/paint.py") == ["VALUE = 1\n", "VALUE = 2\n"]
        assert sides.read(f"{INNER}/ink.py") == ["VALUE = 1\n", "VALUE = 2\n"]
        assert sides.worktrees.notes == []
        for root in sides.roots:
            assert moved.git("-C", str(root), "status", "--porcelain") == ""
            assert moved.git("-C", str(root / OUTER), "describe", "--tags").startswith("v1")
    assert configured(moved) == before
    assert [*moved.cache.glob("*/trees/*"), *moved.folder.glob(".git/worktrees/*")] == []


def test_a_kept_build_has_them_and_is_made_again_where_the_clone_had_not(moved: Project) -> None:
    modules, hidden = (moved.folder / ".git" / name for name in ("modules", "hidden"))
    build = ("/bin/sh -c 'for file in vendor/paint/*; do echo $file >> built; done'",)
    modules.rename(hidden)
    with ExitStack() as stack:
        assert "paint.py" not in Sides(moved, stack, build, rev="HEAD").read("built")[1]
    hidden.rename(modules)
    for _ in ("built", "kept"):
        with ExitStack() as stack:
            sides = Sides(moved, stack, build, rev="HEAD")
            assert ["vendor/paint/paint.py" in text for text in sides.read("built")] == [True] * 2
            assert sides.read("built")[1].count("paint.py") == 1
            assert sides.read(f"{OUTER}/paint.py") == ["VALUE = 1\n", "VALUE = 2\n"]
            assert sides.worktrees.notes == []


def test_what_is_written_into_a_submodule_is_written_into_the_tree(moved: Project) -> None:
    with ExitStack() as stack:
        _, root = Sides(moved, stack).roots
        before = uncommitted(root)
        assert before == {}
        (root / OUTER / "__pycache__").mkdir()
        (root / OUTER / "__pycache__" / "paint.pyc").touch()
        (root / OUTER / "built.py").touch()
        assert written_since(before, uncommitted(root)) == ()
        (root / OUTER / "paint.py").write_text("VALUE = 3\n")
        assert written_since(before, uncommitted(root)) == (OUTER,)


def test_a_commit_that_the_clone_lacks_is_an_error_that_says_what_to_do(moved: Project) -> None:
    commit = "1" * 40
    moved.git("update-index", "--cacheinfo", f"160000,{commit},{OUTER}")
    moved.git("commit", "--quiet", "--message", "a commit of elsewhere")
    with ExitStack() as stack:
        repository = open_repository(moved.folder)
        worktrees = SideFolders(moved.cache, repository)
        with pytest.raises(MeasureError) as caught:
            stack.enter_context(worktrees.side(repository.resolve("HEAD")))
        assert caught.value.slug == SUBMODULE_COMMIT_MISSING
        assert f"git -C {OUTER} fetch --all" in caught.value.advice
        assert commit in caught.value.message
        build = ("/bin/sh -c 'echo git submodule update'",)
        root = stack.enter_context(
            worktrees.side(repository.resolve("HEAD"), BuildRecipe(build=build))
        )
        assert [*(root / OUTER).iterdir()] == []  # it is the build's


def test_what_the_clone_has_not_initialised_stays_empty_and_is_noted_once(moved: Project) -> None:
    clone = moved.folder.parent / "clone"
    moved.git("clone", "--quiet", str(moved.folder), str(clone))
    moved.folder = clone
    with ExitStack() as stack:
        sides = Sides(moved, stack)
        assert [[*(root / OUTER).iterdir()] for root in sides.roots] == [[], []]
    (note,) = sides.worktrees.notes
    assert f"{OUTER}. Run `git submodule update --init --recursive`" in note


@pytest.mark.parametrize("name", ["../../../elsewhere", "/elsewhere"])
def test_a_name_that_leads_out_of_the_clone_is_not_followed(moved: Project, name: str) -> None:
    file = moved.folder / ".gitmodules"
    file.write_text(f'[submodule "{name}"]\n\tpath = {OUTER}\n\turl = ./x\n')
    moved.commit("a name")
    with ExitStack() as stack:
        sides = Sides(moved, stack)
        assert [*Path(sides.roots[1], OUTER).iterdir()] == []
