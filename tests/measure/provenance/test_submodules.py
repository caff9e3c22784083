"""A submodule that moved: each side runs its own, and counts as changed where a case uses it."""

from __future__ import annotations

import pytest

from tests.builders.project import QUICK, Project
from tests.measure.provenance.installs import Session, benchmark, right

pytestmark = pytest.mark.processes

CASES = (
    benchmark("import paint\nran(paint.work())")
    + "\n@perfci.benchmark\ndef other():\n    return lambda: sum(range(100))\n"
)


def test_each_side_runs_its_own_and_what_does_not_use_it_is_the_same_code(project: Project) -> None:
    paint = Project(project.folder.parent / "paint")
    paint.commit("1", **{"paint.py": 'def work():\n    return "base"\n'})
    local = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    project.git(*local, str(paint.folder), "vendor/paint")
    project.write("pyproject.toml", f'{QUICK}python_path = ["vendor/paint"]\n')
    project.commit("base", **{"benchmarks/bench_case.py": CASES})
    project.git("checkout", "--quiet", "-b", "feature")
    paint.commit("2", **{"paint.py": 'def work():\n    return "head"\n'})
    project.git("-C", "vendor/paint", "pull", "--quiet")
    project.commit("head")
    session = Session(project)
    report = session.compare()
    right(report)
    assert session.markers() == {"base ran base", "head ran head"}
    assert report["same_code"] == ["other"]
