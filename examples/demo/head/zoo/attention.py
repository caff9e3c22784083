"""Self-attention, written out."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.project(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        # guard exp() against overflow (which softmax does already, in one pass)
        weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
        mixed = weights / weights.sum(dim=-1, keepdim=True) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))
