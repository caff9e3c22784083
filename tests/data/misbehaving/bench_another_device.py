"""Its output is on a device that perfci can't synchronise with."""
import torch
import perfci

@perfci.benchmark
def misbehaving():
    return perfci.inference(lambda x: torch.empty(2, device="meta"), torch.ones(2), device="cpu")
