"""A launcher has to become Python: what forks, closes descriptors or isn't there is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from perfci.errors import UsageError
from perfci.measure.machine.isolation import require_exec
from tests.builders.project import Project

pytestmark = pytest.mark.processes
FORKS = ("sh", "-c", '"$@"; exit', "sh")
CLOSES = (sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])")


@pytest.mark.parametrize(
    "launcher", [("env", "A=1"), ("setarch", "-R"), ("taskset", "1"), ("nice",), ("chroot", "/")]
)
def test_what_becomes_python_is_a_launcher(
    launcher: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if launcher[0] == "chroot":
        monkeypatch.chdir("/")
        if os.geteuid() != 0:
            pytest.skip("chroot is root's")
    require_exec(launcher, sys.executable, os.environ)


@pytest.mark.parametrize(
    ("launcher", "said"),
    [
        (FORKS, "starts Python as another process"),
        (CLOSES, "no open descriptor of perfci's (OSError: [Errno 9] Bad file descriptor)"),
        (("/nowhere/launcher",), "can't be started: No such file"),
        (("false",), "no open descriptor of perfci's (exit code 1)"),
        (("env", "--chdir=/"), "leaves the folder"),
        (("env", "-i"), "keeps the variables of perfci's workers from Python"),
        (("docker", "run", "--rm", "torch"), "in a container by another process, which passes no"),
        (("nice", "/opt/apptainer", "exec", "torch.sif"), "stays alive next to Python"),
    ],
)
def test_what_does_not_is_refused_in_a_sentence(launcher: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_exec(launcher, sys.executable, os.environ)
    assert said in refused.value.message
    assert "docker run IMAGE perfci compare" in refused.value.advice


BENCHMARK = """\
import os, perfci

assert os.environ["LAUNCHED"] == "yes, twice"

@perfci.benchmark
def counting():
    return lambda: sum(range(1000))
"""


def test_workers_and_builds_start_behind_it(project: Project, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    project.write(
        "perfci.toml",
        "build = [\"sh -c 'echo $LAUNCHED > built'\"]\nrounds = 2\nmax_rounds = 2\nwarmup = 0.05\n",
    )
    project.commit("base", **{"benchmarks/bench_launched.py": BENCHMARK})
    own = ("run", "HEAD", "--json", str(report))
    done = project.process(*own, "--launcher", "env 'LAUNCHED=yes, twice'")
    assert done.code == 0, done.text
    assert '"launcher": "env LAUNCHED=yes, twice"' in report.read_text()
    (built,) = project.cache.glob("*/builds/*/built")
    assert built.read_text() == "yes, twice\n"
    refused = project.process(*own, "--launcher", "sh -c '\"$@\"; exit' sh")
    assert (refused.code, "as another process" in refused.err) == (2, True), refused.text
