"""Work that other processes do."""

import multiprocessing

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from work.planted import units


class Rows(Dataset):
    """Forty rows, each of which takes ``count`` operations to make."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return 40

    def __getitem__(self, index):
        row = torch.full((64,), float(index))
        for _ in range(self.count):
            row = torch.tanh(row)
        return row


def data_loader():
    loader = DataLoader(
        Rows(units(100)), batch_size=4, num_workers=1, persistent_workers=True, prefetch_factor=4
    )
    return lambda: sum(float(batch[0, 0]) for batch in loader)


def _serve(pipe, count):
    x = torch.randn(64, 64)
    while pipe.recv() is not None:
        y = x
        for _ in range(count):
            y = torch.tanh(y)
        pipe.send(float(y[0, 0]))


def child():
    """A child does the work: the call sends it a message, and waits for its answer."""
    here, there = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_serve, args=(there, units(200)), daemon=True
    )
    process.start()

    def call():
        here.send(1)
        return here.recv()

    return call


def rank():
    """Compute for a while, then exchange the result."""
    x, count = torch.randn(64, 64), units(200)

    def step():
        y = x
        for _ in range(count):
            y = torch.tanh(y)
        dist.all_reduce(y, op=dist.ReduceOp.MAX)
        return y

    return step
