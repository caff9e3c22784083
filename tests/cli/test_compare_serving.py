"""Serving compared: what is planted in a phase of a request moves that phase's metric alone."""

from __future__ import annotations

import json
import time
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.builders.project import QUICK, Project, assert_ends, rows

pytestmark = pytest.mark.processes
SERVER = (Path(__file__).parent.parent / "data" / "serving" / "serve.py").read_text()
BENCHMARK = """\
import sys
import perfci

@perfci.benchmark
def slower_prefill():
    line = [sys.executable, "serve.py", "{{port}}", "--slower", "prefill", "--log", {log!r}]
    server = perfci.server(line, ready="/health")
    print(server.pid, file=open({pids!r}, "a"))
    return perfci.generate(server.url, body={{"prompt": "one"}}, requests=2)

@perfci.benchmark
def slower_decode():
    import engine
    return perfci.generate(engine.tokens, requests=2)
"""
ENGINE = """\
import time
SLOWER_S = 0.0

def tokens():
    time.sleep(0.003)
    for number in range(8):
        if number:
            time.sleep(0.001 + SLOWER_S)
        yield number
"""
PLANTED = ("SLOWER_S = 0.0", "SLOWER_S = 0.005")
LONGER = QUICK.replace("round_time = 0.01", "round_time = 0.1")
FIRST, BETWEEN = "time_to_first_token", "inter_token_latency_p50"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose head takes 5 ms more in the phase that a case is named for."""
    folder = tmp_path_factory.mktemp("serving")
    project = Project(folder / "project")
    source = BENCHMARK.format(log=str(folder / "log"), pids=str(folder / "pids"))
    project.write("pyproject.toml", LONGER)
    project.write("benchmarks/bench_one.py", source)
    project.commit("base", **{"serve.py": SERVER, "engine.py": ENGINE})
    served, made = SERVER.replace(*PLANTED), ENGINE.replace(*PLANTED)
    project.commit("slower", **{"serve.py": served, "engine.py": made})
    return project


@pytest.fixture(scope="module")
def report(serving: Project) -> dict[str, Any]:
    return serving.report("compare", "HEAD~1", "HEAD", "--rounds", "2")


@pytest.mark.parametrize(
    ("phase", "moved", "still"), [("prefill", FIRST, BETWEEN), ("decode", BETWEEN, FIRST)]
)
def test_what_is_planted_in_a_phase_moves_that_phase_alone(
    report: dict[str, Any], phase: str, moved: str, still: str
) -> None:
    found = rows(report, f"slower_{phase}")
    assert found[moved]["ratio"] > 1.5, found[moved]
    assert found["end_to_end"]["ratio"] > 1.1
    assert found[still]["ratio"] < 1.4, found[still]
    assert found["tokens_per_request"]["ratio"] == 1.0


def test_requests_of_the_sides_are_never_in_flight_at_once(
    serving: Project, report: dict[str, Any]
) -> None:
    assert not report["failures"]
    log = (serving.folder.parent / "log").read_text()
    requests = sorted(map(json.loads, log.splitlines()), key=lambda one: one[1])
    turns = [
        (min(began for _, began, _ in turn), max(ended for _, _, ended in turn))
        for turn in (list(made) for _, made in groupby(requests, key=lambda one: one[0]))
    ]
    assert len(turns) > 10
    assert all(before[1] <= after[0] for before, after in pairwise(turns))


def test_no_server_outlives_a_session_that_is_killed(serving: Project) -> None:
    pids = serving.folder.parent / "pids"
    pids.unlink(missing_ok=True)
    process = serving.start("compare", "HEAD~1", "HEAD")
    deadline = time.monotonic() + 60
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    for pid in pids.read_text().split():
        assert_ends(int(pid))


def test_what_a_server_put_into_a_session_of_its_own_ends_with_it_and_is_no_leftover(
    project: Project,
) -> None:
    pids = project.folder.parent / "pids"
    script = f"setsid sleep 600 & echo $! >> {pids}; echo up; exec sleep 600"
    source = (
        "import perfci\n\n@perfci.benchmark\ndef case():\n"
        f"    perfci.server(['sh', '-c', {script!r}], ready='up')\n    return int\n"
    )
    project.commit("apart", **{"benchmarks/bench_one.py": source})
    report = project.report("run", "--rounds", "2")
    assert report["failures"] == []
    for pid in pids.read_text().split():
        assert_ends(int(pid))


def test_a_stream_that_stalls_ends_by_the_timeout_with_its_server(project: Project) -> None:
    source = BENCHMARK.replace('"prefill", "--log", {log!r}', '"", "--how", "stalls"')
    pids = project.folder.parent / "pids"
    project.write("benchmarks/bench_one.py", source.format(pids=str(pids)))
    project.write("pyproject.toml", QUICK.replace("timeout = 20", "timeout = 2"))
    project.commit("stalls", **{"serve.py": SERVER, "engine.py": ENGINE})
    [failure] = project.report("run", "-k", "prefill")["failures"]
    assert (failure["kind"], failure["stage"]) == ("timeout", "first_call")
    assert_ends(int(pids.read_text().split()[0]))
