"""``calibrate --parallel``: sessions that disturb each other are found, and then kept apart."""

from __future__ import annotations

import pytest

from perfci.measure.machine.cores import available_cores, physical_cores
from tests.builders.project import QUICK, Project

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        len(physical_cores(available_cores())) < 2, reason="one core can't be parted"
    ),
]
DISTURBED = """\
import os, pathlib, random, time
import perfci

OWN = next(
    one for one in pathlib.Path(os.environ["TMPDIR"]).parents if one.name.startswith("session-")
)

@perfci.benchmark
def crowded():
    slower = random.SystemRandom().uniform(0.0, 6.0)

    def call():
        beside = any(one != OWN and one.is_dir() for one in OWN.parent.glob("session-*"))
        time.sleep(0.001 * (1.0 + (slower if beside else 0.0)))

    return call
"""


@pytest.mark.slow
def test_sessions_that_disturb_each_other_are_measured_one_at_a_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five rounds of each session show it, however long they take.

    A worker is slower as long as another session has its folder.
    """
    monkeypatch.setattr("perfci.commands.calibrate._ENDLESS_ROUNDS", 5)
    project.write("pyproject.toml", QUICK.replace("max_rounds = 9", "max_rounds = 5"))
    project.write("benchmarks/bench_one.py", DISTURBED)
    project.commit("base")
    done = project.perfci("calibrate", "HEAD", "--parallel", "2", "--budget", "270s")
    assert done.code == 0, done.text
    assert "2 sessions at once spread" in done.out
    assert "measures one shard at a time here" in done.out
    assert not list((project.cache / "jobs").iterdir())
    project.commit("head", **{"README.md": "head"})
    away = ("--head-python", "/nowhere")  # nothing is measured
    engine = ("--engine", "local", "--shards", "2")
    done = project.process("compare", "HEAD~1", "HEAD", *engine, *away)
    assert "one shard at a time: 2 sessions at once spread" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--parallel", "200"), "physical cores for --parallel 200"),
        (("--parallel", "2", "--json", "x.json"), "--parallel writes no file"),
    ],
)
def test_what_can_not_be_calibrated_so_is_refused(
    project: Project, arguments: tuple[str, ...], said: str
) -> None:
    project.write("pyproject.toml", QUICK)
    project.counting(1000)
    project.commit("base")
    done = project.perfci("calibrate", "HEAD", *arguments).without_traceback()
    assert (done.code, said in done.err) == (2, True), done.text
