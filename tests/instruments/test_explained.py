"""One ``perfci explain`` of real workers with torch: what each instrument has to say of it."""

from __future__ import annotations

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
def explained(tmp_path_factory: pytest.TempPathFactory) -> Done:
    project = Project(tmp_path_factory.mktemp("explained") / "project")
    project.write("benchmarks/bench_net.py", _BENCHMARK)
    project.commit("base", **{"model.py": _MODEL.format(line="x = x + 1")})
    head = _MODEL.format(line="self.turn += 1")
    project.commit("head", **{"model.py": f"import xmlrpc.server\n{head}"})
    asked = ("explain", "HEAD~1", "HEAD", "--within", "5m")
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
