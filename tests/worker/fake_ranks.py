"""A torch whose ranks meet in a folder: how they start, fail and end needs no real collectives."""

from __future__ import annotations

from pathlib import Path

from tests.machine.fake_torch import write_torch

TORCH = """\
import os
from types import SimpleNamespace

from torch import distributed

__version__ = "2.9.0"
version = SimpleNamespace(cuda=None)
cuda = SimpleNamespace(is_available=lambda: False, is_initialized=lambda: False)


class Tensor:
    def __init__(self, count):
        self.count, self.each = count, 1

    def sum(self):
        return self.count * self.each


ones = Tensor


def manual_seed(seed): ...


def set_num_threads(count): ...


def get_num_threads():
    return int(os.environ["OMP_NUM_THREADS"])
"""
DISTRIBUTED = """\
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

_MET = Path(__file__).parents[2] / "met"
_group = SimpleNamespace(rank=0, world=0, calls=count())


def TCPStore(*address, is_master, wait_for_workers, master_listen_fd): ...


def init_process_group(backend, *, store, rank, world_size):
    _group.rank, _group.world = rank, world_size


def get_rank():
    return _group.rank


def get_world_size():
    return _group.world


def all_reduce(numbers):
    _meet("all_reduce")
    numbers.each *= _group.world


def barrier():
    _meet("barrier")


def _meet(name):
    place = _MET / f"{name} {next(_group.calls)}"
    place.mkdir(parents=True, exist_ok=True)
    (place / str(_group.rank)).touch()
    while len(list(place.iterdir())) < _group.world:
        time.sleep(0.001)
"""


def write_ranks_torch(root: Path) -> None:
    """Write the package ``torch`` into a side's tree."""
    write_torch(root, {"__init__.py": TORCH, "distributed/__init__.py": DISTRIBUTED})
