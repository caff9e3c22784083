"""Asks torch for a petabyte."""
import torch
import perfci

@perfci.benchmark
def misbehaving():
    return lambda: torch.empty(1 << 50)
