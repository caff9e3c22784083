"""What the zoo's users wait for."""

import torch

import perfci
from zoo import Attention, Gate, Mixer


@perfci.benchmark(batch=[1, 8])
def attention(batch):
    return perfci.inference(Attention().eval(), torch.randn(batch, 128, 128), items=batch)


@perfci.benchmark(batch=[1, 8])
def mixer(batch):
    return perfci.inference(Mixer().eval(), torch.randn(batch, 3, 32, 32), items=batch)


@perfci.benchmark(mode=["default"])
def gate(mode):
    return perfci.inference(Gate().eval(), torch.randn(16, 128), mode=mode, items=16)
