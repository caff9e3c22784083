"""Builds: once for each tree, commands and environment; never taken as done when they were not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from perfci.errors import MeasureError
from perfci.measure.checkout.build import BuildRecipe, build_key
from perfci.measure.checkout.side_folders import KEPT
from perfci.measure.process_cleanup import SESSION_VARIABLE
from tests.builders.project import Project, assert_ends
from tests.builders.repository import holder, opened, state, three_commits, wait_for, worktrees_of


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return three_commits(tmp_path / "project")


def counting(tmp_path: Path, then: str = "true") -> str:
    """A command that says how often it ran, in the file ``runs``."""
    return f"bash -c 'echo ran >> {tmp_path}/runs; cp value built; {then}'"


def runs(tmp_path: Path) -> int:
    path = tmp_path / "runs"
    return len(path.read_text().split()) if path.exists() else 0


def built(project: Project, rev: str, *commands: str, python: str = sys.executable) -> Path:
    resolved = opened(project).resolve(rev)
    with worktrees_of(project).side(
        resolved,
        BuildRecipe(build=commands, python=python, environment={"PATH": os.environ["PATH"]}),
    ) as path:
        assert path.exists()
    return path


def kept(project: Project) -> list[str]:
    return sorted(path.name for path in project.cache.glob("*/trees/*"))


def test_the_same_tree_commands_and_python_are_built_once(project: Project, tmp_path: Path) -> None:
    command = counting(tmp_path)
    path = built(project, "HEAD", command)
    assert (path / "built").read_text() == "three"
    project.commit("Another commit of the same tree")
    assert built(project, "HEAD", command) == path
    assert worktrees_of(project).sweep() == ()
    assert runs(tmp_path) == 1
    built(project, "HEAD~2", command)
    built(project, "HEAD", command, "true")
    built(project, "HEAD", command, python="/another/python")
    assert runs(tmp_path) == 4


def test_a_build_leaves_the_users_checkout_alone(project: Project, tmp_path: Path) -> None:
    project.write("value", "changed")
    before = {name: part for name, part in state(project).items() if name != "worktrees"}
    assert (built(project, ".", counting(tmp_path)) / "built").read_text() == "changed"
    assert {name: part for name, part in state(project).items() if name != "worktrees"} == before


def test_the_sides_python_and_environment_reach_the_commands(project: Project) -> None:
    script = "import os, sys; print(sys.executable, dict(os.environ), file=open('who', 'w'))"
    resolved = opened(project).resolve("HEAD")
    with worktrees_of(project).side(
        resolved,
        BuildRecipe(
            build=[f'{{python}} -c "{script}"'], python=sys.executable, environment={"ONLY": "this"}
        ),
    ) as path:
        said = (path / "who").read_text()
    assert said.startswith(sys.executable)
    assert "'ONLY': 'this'" in said
    assert "HOME" not in said


def test_a_failing_build_shows_its_command_and_its_last_words(
    project: Project, tmp_path: Path
) -> None:
    command = counting(tmp_path, then="echo nvcc is missing >&2; exit 3")
    for attempt in (1, 2):
        with pytest.raises(MeasureError, match="nvcc is missing") as caught:
            built(project, "HEAD", command)
        assert caught.value.slug == "build-failed"
        assert "exit status 3" in caught.value.message
        assert "echo nvcc" in caught.value.message
        assert runs(tmp_path) == attempt, "a failed build was taken as complete"
    assert "perfci-" not in project.git("worktree", "list")


def test_commands_after_a_failing_one_do_not_run(project: Project, tmp_path: Path) -> None:
    with pytest.raises(MeasureError):
        built(project, "HEAD", "false", counting(tmp_path))
    assert runs(tmp_path) == 0


def test_a_build_over_its_time_is_ended_with_all_its_processes(
    project: Project, tmp_path: Path
) -> None:
    child, new = tmp_path / "child", tmp_path / "child.new"
    command = f"bash -c 'sleep 300 & echo $! > {new} && mv {new} {child}; wait'"
    resolved = opened(project).resolve("HEAD")
    for seconds in (1, 5, 25):
        with (
            pytest.raises(MeasureError, match=f"was not done after {seconds} s"),
            worktrees_of(project).side(
                resolved,
                BuildRecipe(build=[command], environment=dict(os.environ), timeout=float(seconds)),
            ),
        ):
            pytest.fail("this build can't be done")
        if child.exists():  # else it had no time to start anything: that tests nothing
            break
    assert_ends(int(child.read_text()))


def test_a_killed_build_is_never_taken_as_complete(project: Project, tmp_path: Path) -> None:
    command = counting(tmp_path, then=f"while [ -e {tmp_path}/wait ]; do sleep 0.05; done")
    (tmp_path / "wait").touch()
    with holder(project, command) as building:
        wait_for(tmp_path / "runs")
        assert worktrees_of(project).sweep() == (), "a living build was swept"
        building.kill()
        building.wait()
        (tmp_path / "wait").unlink()
    swept = worktrees_of(project).sweep()
    assert len(swept) == 1
    assert kept(project) == []
    assert built(project, "HEAD", command).exists()
    assert runs(tmp_path) == 2


def test_two_who_want_the_same_build_at_once_build_it_once(
    project: Project, tmp_path: Path
) -> None:
    command = counting(tmp_path, then="sleep 0.5")
    with holder(project, command):
        wait_for(tmp_path / "runs")
        assert (built(project, "HEAD", command) / "built").exists()
    assert runs(tmp_path) == 1


def test_the_builds_unused_for_longest_are_given_up_but_none_in_use(
    project: Project, tmp_path: Path
) -> None:
    resolved = opened(project).resolve("HEAD")
    environment = {"PATH": os.environ["PATH"]}
    with worktrees_of(project).side(
        resolved, BuildRecipe(build=["true"], environment=environment)
    ) as used:
        paths = [built(project, "HEAD", "true", *["true"] * n) for n in range(1, KEPT + 1)]
        assert used.exists()
        assert not paths[0].exists()
        assert all(path.exists() for path in paths[1:])
    built(project, "HEAD", "true")  # the first that was made, used again: another one goes
    built(project, "HEAD", "echo")
    assert used.exists()
    assert not paths[1].exists()
    assert project.git("worktree", "list").count("/trees/") == KEPT


def test_a_build_that_was_written_to_is_made_again(project: Project, tmp_path: Path) -> None:
    command = counting(tmp_path)
    tree = built(project, "HEAD", command)
    (tree / "value").write_text("slow")
    (tree / "sitecustomize.py").touch()
    for _ in range(2):
        assert (built(project, "HEAD", command) / "value").read_text() == "three"
        assert not (tree / "sitecustomize.py").exists()
        assert runs(tmp_path) == 2


def test_what_the_build_changes_of_the_commit_is_said_of_a_kept_one_too(
    project: Project, tmp_path: Path
) -> None:
    project.write("lib.py", "CHECKED = True\n")
    project.write("gone.py", "")
    project.commit("A library")
    commands = ["sed -i s/True/False/ lib.py", "rm gone.py", "touch built", counting(tmp_path)]
    for _ in range(2):
        worktrees = worktrees_of(project)
        resolved = opened(project).resolve("HEAD")
        with worktrees.side(resolved, BuildRecipe(build=commands, environment=dict(os.environ))):
            pass
        (note,) = worktrees.notes
        assert note.startswith(f"The build of {resolved.commit[:12]} changed 2 tracked files")
        assert note.endswith(": 'gone.py', 'lib.py'.")
    assert runs(tmp_path) == 1


def test_a_build_is_another_where_a_variable_has_another_value_but_for_the_sessions(
    project: Project, tmp_path: Path
) -> None:
    resolved = opened(project).resolve("HEAD")
    values = []
    for variant, session in (("1", "a"), ("2", "a"), ("2", "b")):
        variables = {"VARIANT": variant, SESSION_VARIABLE: session}
        with worktrees_of(project).side(
            resolved,
            BuildRecipe(
                build=[counting(tmp_path, 'echo "$VARIANT" > built')],
                environment={**os.environ, **variables},
            ),
        ) as path:
            values.append((path / "built").read_text().strip())
    assert values == ["1", "2", "2"]
    assert runs(tmp_path) == 2


def test_a_build_is_another_with_another_compiler_or_other_packages(tmp_path: Path) -> None:
    compiler = tmp_path / "compiler"
    recipe = BuildRecipe(build=("make",), environment={"CC": f"{compiler} -O2"})
    keys = set()
    for version in ("1", "2"):
        compiler.write_text(f"#!/bin/sh\necho {version}\n")
        compiler.chmod(0o755)
        keys |= {build_key(recipe, frozenset({f"a 1 at {when}"})) for when in (1, 2)}
    assert len(keys) == 4
    assert build_key(recipe, frozenset({"a 1 at 2"})) in keys


@pytest.mark.parametrize("variable", ["CC", "CXX", "PATH"])
@pytest.mark.parametrize("change", ["version", "flags"])
def test_a_build_is_another_with_another_compiler_of_the_same_name(
    tmp_path: Path, variable: str, change: str
) -> None:
    """Named by a variable or found on PATH, behind a launcher of compilers or not."""
    compiler = tmp_path / "g++"
    value = str(tmp_path) if variable == "PATH" else f"/bin/echo {compiler} -O2"
    recipe = BuildRecipe(build=("make",), environment={variable: value})
    keys = set()
    for each in ("1", "2", "2"):
        text = f"echo {each}" if change == "version" else f"exit 0 # -O{each}"
        compiler.write_text(f"#!/bin/sh\n{text}\n")
        compiler.chmod(0o755)
        keys.add(build_key(recipe, frozenset()))
    assert len(keys) == 2
