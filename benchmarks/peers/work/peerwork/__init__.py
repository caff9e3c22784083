"""The library that every tool benchmarks: ``build(name)`` returns the work of one benchmark."""

import torch

from peerwork.pace import paced
from peerwork.share import SHARE
from peerwork.works import WORKS

# One thread for everybody: a second one would only add noise to each tool's figures.
torch.set_num_threads(1)

NAMES = tuple(WORKS)


def build(name, share=SHARE):
    """Return the callable of benchmark ``name``, called once (so that it is compiled)."""
    torch.manual_seed(0)
    call = paced(WORKS[name](), share)
    call()
    return call
