"""A compiled module."""

import torch

from work.calls import repeated
from work.planted import units


def compiled():
    layer = torch.compile(
        torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
    )
    return repeated(layer, torch.randn(16, 64), units(50))
