"""Six kinds of work: each function builds one and returns it as a callable without arguments."""

import json

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def eager():
    """A transformer layer, uncompiled."""
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).eval()
    tokens = torch.randn(4, 32, 128)
    return torch.no_grad()(lambda: layer(tokens))


def compiled():
    """A small network under torch.compile with its defaults."""
    network = nn.Sequential(
        nn.LayerNorm(256), nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.Softmax(dim=-1)
    )
    network = torch.compile(network.eval())
    rows = torch.randn(64, 256)
    return torch.no_grad()(lambda: network(rows))


def memory_bound():
    """The sum of two tensors that no cache holds."""
    left, right, total = (torch.ones(2**22) for _ in range(3))
    return lambda: torch.add(left, right, out=total)


def allocating():
    """Sixteen tensors of 256 KiB at once, above glibc's threshold for mmap, freed each call."""
    return lambda: len([torch.ones(2**16) for _ in range(16)])


def tiny():
    """About ten microseconds: Python's and the dispatcher's cost, no arithmetic to speak of."""
    row = torch.ones(16)
    return lambda: torch.relu(row + row).softmax(0).sum()


class _Records(Dataset):
    def __init__(self):
        self.lines = [json.dumps({"id": i, "values": list(range(i, i + 16))}) for i in range(64)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        record = json.loads(self.lines[index])
        return torch.tensor(record["values"], dtype=torch.float32), record["id"]


def loading():
    """Parsing and collating 64 records in Python."""
    loader = DataLoader(_Records(), batch_size=16, num_workers=0)
    return lambda: [batch for batch, _ in loader]


WORKS = {work.__name__: work for work in (eager, compiled, memory_bound, allocating, tiny, loading)}
