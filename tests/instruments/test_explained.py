"""One ``perfci explain`` of real workers with torch: what each instrument has to say of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders.in_process import Done
from tests.builders.project import Project

_MODEL = """\
import torch
from torch.utils.data import DataLoader

class Net(torch.nn.Module):
    turn = 0

    def forward(self, x):
        {line}
        return torch.relu(x) * self.turn

net = torch.compile(Net(), backend="eager")
loader = DataLoader(torch.ones(1, 8))

def call():  # nobody calls this compiled
    return [net(batch) for batch in loader]
"""
_BENCHMARK = """\
import perfci
import model

@perfci.benchmark(batch=[1])
def net(batch):
    return model.call
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explained") / "deep" / "traces"


@pytest.fixture(scope="module")
def explained(traces: Path) -> Done:
    project = Project(traces.parents[1] / "project")
    project.write("benchmarks/bench_net.py", _BENCHMARK)
    project.commit("base", **{"model.py": _MODEL.format(line="x = x + 1")})
    head = _MODEL.format(line="self.turn += 1")
    project.commit("head", **{"model.py": f"import xmlrpc.server\n{head}"})
    asked = ("explain", "HEAD~1", "HEAD", "--within", "5m", "--trace", str(traces))
    done = project.perfci(*asked).without_traceback()
    assert done.code == 0, done.text
    return done


def test_what_a_plain_callable_compiles_again_is_told(explained: Done) -> None:
    said = " compile again 0 → 7 times, as this guard fails: self.turn == 1, model.py:9"
    assert f"{said} (a changed line)\n" in explained.out, explained.out


def test_the_line_that_pulls_a_module_in_is_named(explained: Done) -> None:
    (imported,) = (said for said in explained.out.splitlines() if "`xmlrpc`" in said)
    assert imported.startswith("  `xmlrpc` is newly imported with "), explained.out
    assert imported.endswith(", model.py:1 (a changed line)"), explained.out


def test_a_hint_is_printed(explained: Done) -> None:
    said = "hint: a DataLoader without workers makes its batches within the call, 1 of them"
    assert said in explained.out


def test_each_side_has_a_trace(explained: Done, traces: Path) -> None:
    base, head = sorted(traces.iterdir())
    assert (base.suffixes[-2:], head.suffixes[-2:]) == ([".base", ".json"], [".head", ".json"])
    for file in (base, head):
        names = {one["name"] for one in json.loads(file.read_text())["traceEvents"]}
        assert "aten::relu" in names
