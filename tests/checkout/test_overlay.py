"""One commit's benchmark files in another commit's tree: in git's objects, and checked out."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.measure.checkout.build import BuildRecipe
from perfci.measure.checkout.git import ResolvedRev
from perfci.measure.checkout.trees import BenchmarkFiles, Overlay, lay_over
from tests.builders.project import Project
from tests.builders.repository import opened, state, worktrees_of

ENVIRONMENT_FOLDER = BenchmarkFiles("benchmarks", "bench_*.py", (".", "src"))


def tree_of(project: Project, rev: str) -> str:
    return project.git("rev-parse", f"{rev}^{{tree}}").strip()


def content(project: Project, tree: str) -> dict[str, str]:
    """Return each file's text by its path, of a link where it leads."""
    names = project.git("ls-tree", "-r", "--name-only", tree).split()
    return {name: project.git("cat-file", "-p", f"{tree}:{name}") for name in names}


def laid(
    project: Project,
    base: dict[str, str],
    head: dict[str, str],
    benchmarks: BenchmarkFiles = ENVIRONMENT_FOLDER,
) -> tuple[Overlay, dict[str, str]]:
    """Return head's benchmark files laid over base, and what is in that tree."""
    (project.folder / "pyproject.toml").unlink(missing_ok=True)
    for name, files in (("base", base), ("head", head)):
        project.git("rm", "-rq", "--ignore-unmatch", ".")
        for path, text in files.items():
            file = project.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                file.symlink_to(text.removeprefix("-> "))
            else:
                file.write_text(text)
        project.commit(name)
    base_tree, head_tree = tree_of(project, "HEAD~"), tree_of(project, "HEAD")
    overlay = lay_over(opened(project), base_tree, head_tree, benchmarks)
    assert lay_over(opened(project), head_tree, head_tree, benchmarks).tree == head_tree
    return overlay, content(project, overlay.tree)


def test_the_folder_is_heads_and_all_else_is_bases(project: Project) -> None:
    overlay, files = laid(
        project,
        {"lib.py": "1", "benchmarks/bench_a.py": "1", "benchmarks/gone.py": "1", "only": "1"},
        {"lib.py": "2", "benchmarks/bench_a.py": "2", "benchmarks/data/new": "2", "added": "2"},
    )
    assert files == {
        "lib.py": "1",
        "only": "1",
        "benchmarks/bench_a.py": "2",
        "benchmarks/data/new": "2",
    }
    assert overlay.added == {"benchmarks/data/new"}
    assert overlay.changed == {"benchmarks/bench_a.py"}


def test_equal_benchmarks_leave_the_tree_as_it_is(project: Project) -> None:
    benchmarks = {"benchmarks/bench_a.py": "1", "benchmarks/data": "1"}
    overlay, _ = laid(project, {"lib.py": "1", **benchmarks}, {"lib.py": "2", **benchmarks})
    assert overlay.tree == tree_of(project, "HEAD~")


@pytest.mark.parametrize(
    ("benchmarks", "whole"),
    [(".", False), ("mylib", False), ("mylib/speed", False), ("mylib/benchmarks", True)],
)
def test_what_lies_beside_benchmark_files_in_a_package_is_the_library(
    project: Project, benchmarks: str, whole: bool
) -> None:
    place = "" if benchmarks == "." else f"{benchmarks}/"
    files = ("mylib/__init__.py", f"{place}bench_a.py", f"{place}core.py", f"{place}old/bench_b.py")
    base = dict.fromkeys(files, "1")
    head = dict.fromkeys(files[:3], "2")
    _, made = laid(project, base, head, BenchmarkFiles(benchmarks, "bench_*.py", (".", "src")))
    core = "2" if whole else "1"
    assert made == {files[0]: "1", files[1]: "2", files[2]: core}


def test_a_root_without_python_path_has_benchmark_files_alone(project: Project) -> None:
    names = ("lib.py", "bench_a.py")
    _, made = laid(
        project,
        dict.fromkeys(names, "1"),
        dict.fromkeys(names, "2"),
        BenchmarkFiles(".", "bench_*.py", ()),
    )
    assert made == {"lib.py": "1", "bench_a.py": "2"}


def test_links_lead_into_the_sides_own_tree(project: Project) -> None:
    def files(value: str) -> dict[str, str]:
        return {
            "data": value,
            "benchmarks/data": "-> ../data",
            "benchmarks/bench_loop.py": "-> bench_loop.py",
            "benchmarks/bench_out.py": "-> ../../out.py",
        }

    _, made = laid(project, files("1"), files("2"))
    assert made["data"] == "1"


def test_a_benchmark_that_is_a_link_to_what_differs_is_refused(project: Project) -> None:
    """Each side would run its own, and the library's file must stay each side's own."""
    link = {"benchmarks/bench_x.py": "-> ../mylib/core.py"}
    with pytest.raises(UsageError, match=r"bench_x\.py is a link to a file that differs"):
        laid(project, {"mylib/core.py": "1", **link}, {"mylib/core.py": "2", **link})
    _, made = laid(project, {"mylib/core.py": "1", "lib": "1"}, {"mylib/core.py": "1", **link})
    assert made["lib"] == "1"


def test_a_folder_that_is_a_link_is_refused(project: Project) -> None:
    files = {"benchmarks": "-> tools/speed", "tools/speed/bench_x.py": "1"}
    with pytest.raises(UsageError, match="behind the link benchmarks"):
        laid(project, {"benchmarks/bench_x.py": "1"}, files)


def base_with_heads_benchmarks(project: Project) -> tuple[ResolvedRev, Overlay]:
    base = {"lib": "1", "benchmarks/bench_x.py": "1", "benchmarks/own": "1"}
    overlay, _ = laid(project, base, {"lib": "2", "benchmarks/bench_x.py": "2"})
    return opened(project).resolve("HEAD~"), overlay


def test_a_worktree_has_it_at_bases_commit_and_the_users_checkout_is_untouched(
    project: Project,
) -> None:
    resolved, overlay = base_with_heads_benchmarks(project)
    before = state(project)
    with worktrees_of(project).side(replace(resolved, tree=overlay.tree)) as path:
        assert (path / "lib").read_text() == "1"
        assert (path / "benchmarks/bench_x.py").read_text() == "2"
        assert not (path / "benchmarks/own").exists()
        assert _head_of(path) == resolved.commit
    assert state(project) == before


def _head_of(path: Path) -> str:
    command = ["git", "-C", str(path), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_kept_build_with_other_benchmarks_is_another(project: Project) -> None:
    resolved, overlay = base_with_heads_benchmarks(project)
    build = ("cp benchmarks/bench_x.py built",)
    worktrees = worktrees_of(project)
    built = []
    for tree in (resolved.tree, overlay.tree, resolved.tree):
        with worktrees.side(replace(resolved, tree=tree), BuildRecipe(build=build)) as path:
            built.append((path, (path / "built").read_text()))
    assert [text for _, text in built] == ["1", "2", "1"]
    assert built[0] == built[2]
    assert built[0][0] != built[1][0]
