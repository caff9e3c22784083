"""A gated feed-forward block."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.up(x).chunk(2, dim=-1)
        return x + self.down(value * torch.sigmoid(gate))
