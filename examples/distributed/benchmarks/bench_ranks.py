"""A training step of two ranks: data parallel, fully sharded, tensor parallel.

    cd examples/distributed && perfci run

Each function sets up one rank, as a script under torchrun does, and returns its step. Ranks are
forked, which spares them the imports. On GPUs: ``backend="nccl"``, and all on the device ``cuda``.
"""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import perfci

RANKS, WIDTH, BATCH = 2, 256, 32


def ranks(function, items):
    return perfci.distributed(function, ranks=RANKS, items=items, start_method="fork")


def model():
    return nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def training(parallel):
    inputs = torch.randn(BATCH, WIDTH)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        parallel(inputs).square().mean().backward()
        optimizer.step()

    return step


def data_parallel():
    return training(nn.parallel.DistributedDataParallel(model()))


def fully_sharded():
    sharded = model()
    for layer in sharded:
        fully_shard(layer)
    return training(fully_shard(sharded))


def tensor_parallel():
    mesh = init_device_mesh("cpu", (RANKS,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    return training(parallelize_module(model(), mesh, plan))


@perfci.benchmark
def ddp():
    return ranks(data_parallel, items=RANKS * BATCH)


@perfci.benchmark
def fsdp2():
    return ranks(fully_sharded, items=RANKS * BATCH)


@perfci.benchmark
def tp():
    return ranks(tensor_parallel, items=BATCH)
