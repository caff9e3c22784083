"""einops' public functions on small tensors: its own overhead is what a user feels."""

import torch
from einops import rearrange, reduce, repeat

import perfci


@perfci.benchmark
def split_heads():
    x = torch.randn(8, 64, 128)
    return lambda: rearrange(x, "b t (h d) -> b h t d", h=4)


@perfci.benchmark
def pool():
    x = torch.randn(4, 16, 32, 32)
    return lambda: reduce(x, "b c (h h2) (w w2) -> b c h w", "mean", h2=2, w2=2)


@perfci.benchmark
def tile():
    x = torch.randn(16, 16)
    return lambda: repeat(x, "h w -> h (repeat w)", repeat=3)
