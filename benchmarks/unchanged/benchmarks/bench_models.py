"""Work of models whose sides are the same."""

import torch
from quiet import models

import perfci


@perfci.benchmark
def eager():
    x, weight = torch.randn(512, 512), torch.randn(512, 512)
    return lambda: models.encode(x, weight)


@perfci.benchmark
def tiny():
    x = torch.zeros(1)
    return lambda: x + 1


@perfci.benchmark
def compiled():
    x, weight = torch.randn(256, 256), torch.randn(256, 256)
    return lambda: models.compiled(x, weight)


@perfci.benchmark
def training():
    trained, x, wanted = models.Trained(), torch.randn(32, 64), torch.randint(0, 8, (32,))
    return lambda: trained.step(x, wanted)


@perfci.benchmark
def attention():
    x = torch.randn(2, 8, 128, 64)
    return lambda: models.attend(x)


@perfci.benchmark
def memory_heavy():
    x = torch.randn(1 << 18)
    return lambda: models.grow(x)


@perfci.benchmark
def random_inputs():
    x = torch.rand(4096)
    return lambda: models.chosen(x)


@perfci.benchmark
def random_calls():
    return lambda: models.chosen(torch.rand(1024))


@perfci.benchmark
def in_place():
    kept = torch.zeros(4096)
    return lambda: kept.add_(1).mul_(0.5).clamp_(max=9)
