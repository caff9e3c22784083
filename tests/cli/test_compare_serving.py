"""Serving compared: what is planted in a phase of a request moves that phase's metric alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.project import Project, rows

pytestmark = pytest.mark.processes
SERVER = Path(__file__).parent.parent / "data" / "serving" / "serve.py"
BENCHMARK = """\
import sys
import perfci

@perfci.benchmark
def chat():
    server = perfci.server([sys.executable, "serve.py", "{port}"], ready="/health")
    return perfci.generate(server.url + "/generate", body={"prompt": "one"})
"""


@pytest.fixture
def serving(project: Project) -> Project:
    project.write("benchmarks/bench_one.py", BENCHMARK)
    project.write("serve.py", SERVER.read_text())
    project.commit("base")
    return project


def plant(project: Project, what: str, seconds: float) -> None:
    text = SERVER.read_text()
    before, _, after = text.partition(f'"--{what}", type=float, default=')
    old, _, rest = after.partition(")")
    text = f'{before}"--{what}", type=float, default={float(old) + seconds}){rest}'
    project.commit(what, **{"serve.py": text})


@pytest.mark.parametrize(
    ("phase", "moved", "still"),
    [
        ("prefill", "time_to_first_token", "inter_token_latency_p50"),
        ("decode", "inter_token_latency_p50", "time_to_first_token"),
    ],
)
def test_what_is_planted_in_a_phase_moves_that_phase_alone(
    serving: Project, phase: str, moved: str, still: str
) -> None:
    plant(serving, phase, 0.005)
    found = rows(serving.report("compare", "HEAD~1", "HEAD", code=1), "chat")
    assert found[moved]["status"] == "regressed"
    assert found["end_to_end"]["status"] == "regressed"
    assert found[still]["status"] != "regressed"
    assert found["tokens_per_request"]["ratio"] == 1.0
