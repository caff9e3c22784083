"""A compiled module."""

import torch

from work.planted import units


def compiled():
    layer = torch.compile(
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
    )
    x, count = torch.randn(16, 64), units(50)

    @torch.no_grad()
    def call():
        y = x
        for _ in range(count):
            y = layer(y)
        return y

    return call
