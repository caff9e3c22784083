"""Work of the machine whose sides are the same."""

import tempfile
from pathlib import Path

import torch
from quiet import work

import perfci


@perfci.benchmark
def files():
    path = Path(tempfile.mkdtemp()) / "rows.json"
    return lambda: work.store(path, list(range(2_000)))


@perfci.benchmark
def threads():
    parts = [torch.randn(128, 128) for _ in range(8)]
    return lambda: work.in_threads(parts)


@perfci.benchmark
def data_loader():
    loader = work.loader()
    return lambda: work.batches(loader)


@perfci.benchmark
def data_workers():
    loader = work.loader(workers=2)
    return lambda: work.batches(loader)


@perfci.benchmark
def python_loop():
    text = Path(work.__file__).read_text()
    return lambda: work.words(text)
