"""A torch with one card in use, or two, for machines without: what a worker asks, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TORCH = """\
from types import SimpleNamespace

from torch import cuda

__version__ = "2.9.0"
version = SimpleNamespace(cuda="12.6")
backends = SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 90100))


class Tensor: ...


def manual_seed(seed): ...


def set_num_threads(count): ...


def get_num_threads():
    return 1
"""
CUDA = """\
import os
from time import perf_counter
from types import SimpleNamespace

UUIDS = [uuid for uuid in os.environ.get("TORCH_FAKE_UUID", "").split(",") if uuid]


class Event:
    def __init__(self, enable_timing): ...

    def record(self, stream):
        self.at = perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


def is_available():
    return True


def is_initialized():
    return bool(UUIDS)


def current_device():
    return 1


def device_count():
    return 2


def get_device_name(index):
    return "NVIDIA H200"


def current_stream(name):
    return name


def synchronize(name): ...


def memory_reserved(index):
    return index == 1 or len(UUIDS) > 1


def get_device_properties(name):
    index = int(name.removeprefix("cuda:"))
    cards = UUIDS if len(UUIDS) > 1 else ["other", *UUIDS]
    uuid = cards[index] if index < len(cards) else "untold"
    return SimpleNamespace(uuid=uuid) if uuid != "untold" else SimpleNamespace()


class device:
    def __init__(self, name): ...

    def __enter__(self): ...

    def __exit__(self, *error): ...


def reset_peak_memory_stats(name): ...


def max_memory_allocated(name):
    return 1


max_memory_reserved = memory_allocated = max_memory_allocated


def _segment(device, pool):
    return {"device": device, "segment_pool_id": pool, "total_size": 3000, "allocated_size": 1000}


def memory_snapshot():
    return [_segment(1, (0, 0)), _segment(1, (0, 1)), _segment(0, (0, 2))]


def _is_in_bad_fork():
    return False


def _sleep(cycles): ...
"""


CARD = {"__init__.py": TORCH, "cuda.py": CUDA}


def write_torch(folder: Path, modules: Mapping[str, str] = CARD) -> None:
    """Write the package ``torch`` into ``folder``: ``modules``, and what reading outputs needs."""
    utils = {"__init__.py": "", "_pytree.py": "def tree_leaves(output):\n    return [output]\n"}
    for name, text in {**modules, **{f"utils/{name}": utils[name] for name in utils}}.items():
        path = folder / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
