"""Work that traces, exports or transforms a model: measured, and looked into with all instruments.

While such work runs, tensors, shapes and modules stand for others. Neither a metric nor an
instrument may break it.
"""

from __future__ import annotations

import pytest

from perfci.instruments import instruments
from tests.worker.driver import Bench

pytestmark = pytest.mark.torch

SOURCE = """\
import torch
import perfci
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.linear = nn.Conv2d(3, 4, 3), nn.Linear(144, 5)

    def forward(self, x):
        return self.linear(torch.relu(self.convolution(x)).flatten(1))

net, x = Net().eval(), torch.randn(2, 3, 8, 8)

def loss(parameters, sample):
    return functional_call(net, parameters, (sample[None],)).sum()

def faked(x):
    with FakeTensorMode(allow_non_fake_inputs=True):
        return net(torch.empty(2, 3, 8, 8))

@perfci.benchmark
def case():
    return {work}
"""
WORK = {
    "jit trace": "lambda: torch.jit.trace(net, x)",
    "jit-traced model": "perfci.inference(torch.jit.trace(net, x), x)",
    "jit script": "lambda: torch.jit.script(net)(x)",
    "export": "lambda: torch.export.export(net, (x,))",
    "exported model": "perfci.inference(torch.export.export(net, (x,)).module(), x)",
    "make_fx": "lambda: make_fx(net)(x)",
    "symbolic trace": "lambda: torch.fx.symbolic_trace(net)",
    "traced model": "perfci.inference(torch.fx.symbolic_trace(net), x)",
    "fake tensors": "lambda: faked(x)",
    "fake output": "perfci.inference(faked, x)",
    "meta tensors": "lambda: net.to('meta')(x.to('meta'))",
    "vmap of grad": "lambda: vmap(grad(loss), (None, 0))(dict(net.named_parameters()), x)",
    "vmap in inference": "perfci.inference(vmap(lambda one: net(one[None])), x)",
}
CANNOT_BE_MARKED = {"jit trace"}
"""Tracing keeps no tensor that a dispatch mode has replaced."""


@pytest.mark.parametrize("name", WORK)
def test_work_that_traces_is_measured_and_looked_into(torch_bench: Bench, name: str) -> None:
    source = SOURCE.format(work=WORK[name])
    measured = torch_bench.measure(source)
    assert measured["values"]["peak_host_memory"] > 0
    path = torch_bench.write(source)
    looking = torch_bench.order(path, "case", instruments=tuple(instruments()))
    unavailable = {}
    with torch_bench.start(looking) as worker:
        worker.wait_for("ready")
        for instrument in instruments().values():
            worker.send({"do": "record", "instrument": instrument.name})
            answer = worker.wait_for("record")
            unavailable |= {instrument.name: answer["why"]} if answer["why"] else {}
            runs = [answer["recorded"]] * instrument.runs
            assert answer["why"] or list(instrument.differences(runs, runs)) == []
    assert set(unavailable) <= ({"operators", "memory"} if name in CANNOT_BE_MARKED else set())


ODD = """\
import torch
import perfci

class Odd(torch.Tensor):
    @property
    def dtype(self):
        raise RuntimeError("odd")

@perfci.benchmark
def case():
    x = torch.ones(3).as_subclass(Odd)
    return lambda: [x, torch.ones(2)]
"""


def test_an_output_that_cannot_be_looked_at_is_measured(torch_bench: Bench) -> None:
    measured = torch_bench.measure(ODD)
    assert measured["values"]["peak_host_memory"] > 0
    assert measured["missing"]["accuracy_loss"] == "RuntimeError: odd"
