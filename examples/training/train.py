"""Trains a small transformer on random text: data parallel, or fully sharded.

torchrun --nproc-per-node 2 train.py --parallel ddp
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import perfci

WORDS, WIDTH, LENGTH, BATCH = 256, 64, 32, 8
LAYERS, HEADS = 2, 4


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
            for _ in range(LAYERS)
        )
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(text)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.output(hidden)


def wrapped(model: Transformer, parallel: str) -> nn.Module:
    if parallel == "ddp":
        # buckets of 64 KiB: the gradients of the last layers are summed while those of the first
        # ones are computed
        return DistributedDataParallel(model, bucket_cap_mb=1 / 16)
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def loss_of(model: nn.Module, text: torch.Tensor) -> torch.Tensor:
    """Return the loss of predicting each word from the one before."""
    predicted = model(text[:, :-1])
    return nn.functional.cross_entropy(predicted.flatten(0, 1), text[:, 1:].flatten())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parallel", choices=["ddp", "fsdp2"], default="ddp")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = wrapped(Transformer(), options.parallel)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(options.steps):
        text = torch.randint(WORDS, (BATCH, LENGTH), generator=data).sort().values
        optimizer.zero_grad()
        loss = loss_of(model, text)
        loss.backward()
        optimizer.step()
        perfci.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
