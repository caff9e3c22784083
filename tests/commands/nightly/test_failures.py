"""One commit or one comparison doesn't end a night, and a failing history loses nothing."""

from __future__ import annotations

import pytest

from tests.builders.branch import BENCHMARK, Branch, measured
from tests.builders.project import Project
from tests.cli.test_installed_copy import LIBRARY, with_installed

FROM_PACKAGE = BENCHMARK.format(name="counting").replace("from lib", "from tinylib")


@pytest.mark.processes
def test_a_commit_of_before_the_package_moved_is_recorded_and_older_gaps_are_filled(
    project: Project,
) -> None:
    """It would import the installed copy, as with `pip install -e` and a move to ``src/``."""
    branch = Branch(project, 'python_path = ["python"]\n')
    project.write("benchmarks/bench_counting.py", FROM_PACKAGE)
    far = ("python/tinylib/__init__.py", "lib/tinylib/__init__.py")
    oldest = project.commit("python/", **{far[0]: LIBRARY.format(loops=1000)})
    (project.folder / far[0]).unlink()
    moved = project.commit("lib/", **{far[1]: LIBRARY.format(loops=1000)})
    (project.folder / far[1]).unlink()
    newest = project.commit("back", **{far[0]: LIBRARY.format(loops=1000)})
    python = ("--python", with_installed(project.folder.parent / "venv"))
    said = branch.nightly("--commits", "main", *python)
    assert measured(branch.runs()) == {(sha, "counting"): 1 for sha in (oldest, newest)}
    (failed,) = (run for run in branch.runs() if run.failed)
    assert (failed.sha, set(failed.failed)) == (moved, {"counting"})
    assert "installed-copy" in said
    assert "nothing to record" in branch.nightly("--commits", "main", *python)


@pytest.mark.processes
def test_a_tip_that_would_measure_the_installed_copy_is_an_error(project: Project) -> None:
    branch = Branch(project)
    project.write("benchmarks/bench_counting.py", FROM_PACKAGE)
    project.commit("tip", **{"python/tinylib/__init__.py": LIBRARY.format(loops=1000)})
    python = with_installed(project.folder.parent / "venv")
    assert "`tinylib` is imported from" in branch.nightly("--python", python, code=2)
    assert branch.runs() == []
