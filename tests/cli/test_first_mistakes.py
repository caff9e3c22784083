"""What a new user gets wrong first: the message names the mistake and what to write instead."""

from __future__ import annotations

import pytest

from tests.builders.project import Project

WRONG = {
    "a name that the module lacks": (
        "bench_a.py",
        "from math import sqroot\nimport perfci\n",
        "cannot import name 'sqroot' from 'math'. Did you mean `sqrt`?",
    ),
    "an attribute that the module lacks": (
        "bench_a.py",
        "import math\nimport perfci\nmath.sqroot\n",
        "module 'math' has no attribute 'sqroot'. Did you mean `sqrt`?",
    ),
    "no decorator": (
        "bench_a.py",
        "import perfci\n\n\ndef adding():\n    return lambda: 1\n",
        "benchmarks/bench_a.py defines none. Write `@perfci.benchmark` before a function",
    ),
    "a key of the configuration": (
        "bench_a.py",
        "import perfci\n\n\n@perfci.benchmark(allow_broken=True)\ndef adding():\n    return abs\n",
        "own options are name, ids, tags, skip, timeout, thresholds, metrics.",
    ),
    "another file name": (
        "speed.py",
        "import perfci\n\n\n@perfci.benchmark\ndef adding():\n    return lambda: 1\n",
        "benchmarks/speed.py writes benchmarks that are not measured: its name doesn't match",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_first_mistake_is_named_with_what_to_write(project: Project, mistake: str) -> None:
    file, text, advice = WRONG[mistake]
    project.write(f"benchmarks/{file}", text)
    project.commit("first")
    done = project.perfci("list").without_traceback()
    assert done.code in {2, 3}
    shown = " ".join(done.err.split())
    assert advice in shown
    assert shown.count(f"benchmarks/{file}") == 1
    assert str(project.cache) not in shown


def test_one_revision_is_no_range_to_bisect(project: Project) -> None:
    project.commit("first")
    project.commit("second", other="1")
    done = project.perfci("bisect", "HEAD~1", "-k", "adding").without_traceback()
    assert (done.code, "as `HEAD~1..HEAD`" in done.err) == (2, True), done.text


def test_a_file_is_no_commit(project: Project) -> None:
    project.commit("first")
    done = project.perfci("compare", "pyproject.toml").without_traceback()
    assert (done.code, "Name commits here, and choose cases by -k" in done.err) == (2, True)
