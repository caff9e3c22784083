"""Asks torch for a petabyte."""
import torch
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    return lambda: torch.empty(1 << 50)
