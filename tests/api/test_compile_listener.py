import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from tests.api import programs  # noqa: E402

ROOT = str(Path(__file__).parents[2])

PROGRAM = """
import json, os, sys
from dataclasses import asdict
root, function, mode, calls, of, variables = map(json.loads, sys.argv[1:])
os.environ.update(variables)
sys.path.insert(0, root)
os.dup2(1, 2)  # what torch says comes before the last line
import torch, torch._dynamo
import perfci
from perfci.metrics.graphs.compile_listener import GraphWatch
from tests.api import programs

works = [
    perfci.inference(getattr(programs, function), torch.ones(shape), mode=mode, device="cpu",
                     compile_options={"dynamic": False} if mode != "eager" else None)
    for shape in calls
]
watch = GraphWatch()
watch.install()
for work in works:
    work.call()
    work.call()
heard = watch.summary(of)
events = [asdict(event) for event in heard.graph_events]
sys.stderr.flush()
print(json.dumps([heard.values, heard.missing, events, heard.warnings]))
"""


@pytest.fixture(scope="module")
def quiet() -> set[str]:
    """What torch's libraries say on this machine by themselves, as of a /sys that is not there."""
    program = "import torch; torch.ones(4) + 1"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {"", *done.stderr.splitlines()}


@pytest.fixture
def watched(warm):
    """Compile one program in a process of its own; return what was heard, and its stderr."""

    def run(function, mode="backend:eager", shapes=((4,),), root=ROOT, **variables):
        said = warm.run(
            PROGRAM, *map(json.dumps, (ROOT, function.__name__, mode, shapes, root, variables))
        )
        *noise, heard = said.splitlines()
        return *json.loads(heard), "\n".join(noise)

    return run


def test_a_whole_graph_has_no_breaks(watched, quiet):
    values, missing, events, warnings, noise = watched(programs.whole)
    assert values == {"graph_breaks": 0, "recompiles": 0, "graphs": 1}
    assert (missing, events, warnings) == ({}, [], [])
    assert set(noise.splitlines()) <= quiet


@pytest.mark.parametrize(
    ("function", "mark", "graphs"),
    [
        (programs.breaks_once, "plain", 2),
        (programs.breaks_inside_a_call, "nested", None),
        (programs.branches_on_data, "data-dependent", 2),
        (programs.breaks_over_several_lines, "several lines", 2),
    ],
)
def test_a_break_is_counted_once_at_its_own_line(watched, function, mark, graphs):
    values, missing, events, warnings, noise = watched(function)
    assert values["graph_breaks"] == 1
    assert graphs is None or values["graphs"] == graphs
    (event,) = events
    assert event["kind"] == "graph_break"
    assert event["file"] == "tests/api/programs.py"
    assert event["line"] == programs.line_of(mark)
    assert 10 < len(event["reason"]) <= 300
    assert not event["reason"].startswith("Encountered")
    assert (missing, warnings) == ({}, [])
    assert "graph_breaks" not in noise


def test_a_break_in_a_loop_is_no_graph_and_not_zero_breaks(watched):
    values, missing, events, warnings, _ = watched(programs.breaks_in_a_loop)
    assert values["graphs"] == 0
    assert "graph_breaks" not in values
    assert missing == {"graph_breaks": "no graph was compiled"}
    (event,) = events
    assert event["kind"] == "skipped_frame"
    assert (event["file"], event["line"]) == ("tests/api/programs.py", programs.line_of("loop"))
    assert any("gave up" in warning for warning in warnings)


def test_a_function_without_tensor_work_compiles_no_graph(watched):
    values, missing, events, _, _ = watched(programs.returns_its_input)
    assert values["graphs"] == 0
    assert missing["graph_breaks"] == "no graph was compiled"
    assert [event["kind"] for event in events] == ["skipped_frame"]


def test_recompiles_are_counted_with_their_reason(watched, quiet):
    values, _, events, _, noise = watched(programs.whole, shapes=((4,), (5,), (6, 2)))
    assert values["recompiles"] == 2
    assert values["graphs"] == 3
    assert {event["kind"] for event in events} == {"recompile"}
    assert all("mismatch" in event["reason"] for event in events)
    assert all(event["file"] == "tests/api/programs.py" for event in events)
    assert set(noise.splitlines()) <= quiet


def test_reaching_the_recompile_limit_is_a_finding(watched):
    values, _, events, warnings, _ = watched(programs.whole, shapes=[[n] for n in range(2, 13)])
    assert values["recompiles"] >= 7
    assert any(event["kind"] == "recompile_limit" for event in events)
    assert any("recompile limit" in warning for warning in warnings)
    assert not any("gave up" in warning for warning in warnings)


def test_without_a_compilation_nothing_is_claimed(watched):
    values, missing, events, _, _ = watched(programs.whole, mode="eager")
    assert values == {}
    assert set(missing) == {"graph_breaks", "recompiles", "graphs"}
    assert events == []
