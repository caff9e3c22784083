"""A worker that starts processes of its own: they import its benchmark file."""

from __future__ import annotations

import pytest

from tests.worker.driver import Bench

pytestmark = pytest.mark.processes

SPAWNED = ("spawn", "forkserver")
POOL = """
import multiprocessing
import perfci

class Doubler:
    def __call__(self, number):
        return 2 * number

def nested(number):
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        return pool.map(Doubler(), [number])[0]

@perfci.benchmark
def case():
    from concurrent.futures import ProcessPoolExecutor

    executor = ProcessPoolExecutor(1, multiprocessing.get_context("{method}"))

    def work():
        assert executor.submit({ask}, 4).result() == 8
    return work
"""


@pytest.mark.parametrize("method", SPAWNED)
@pytest.mark.parametrize("ask", ["Doubler()", "nested"])
def test_a_spawned_process_imports_the_benchmark_file(bench: Bench, method: str, ask: str) -> None:
    assert bench.measure(POOL.format(method=method, ask=ask))["samples_ns"]


def test_a_file_with_a_dot_in_its_name_is_imported_too(bench: Bench) -> None:
    path = bench.write(POOL.format(method="spawn", ask="Doubler()"), "benchmarks/bench_a.b.py")
    assert bench.measure(path)["samples_ns"]


LOADED = """
import perfci
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(index)

def doubled(rank, share):
    share[rank] *= 2

@perfci.benchmark
def case():
    loader = DataLoader(
        Numbers(), 2, num_workers=1, multiprocessing_context="spawn", persistent_workers=True
    )
    share = torch.ones(1).share_memory_()
    torch.multiprocessing.spawn(doubled, (share,), nprocs=1)
    assert share.item() == 2

    def work():
        assert [part.tolist() for part in loader] == [[0, 1], [2, 3]]
    return work
"""


@pytest.mark.torch
@pytest.mark.slow
def test_torchs_own_processes_import_it_too(bench: Bench) -> None:
    assert bench.measure(LOADED)["samples_ns"]
