"""A rank correlation of values that repeat, as torchmetrics' pull request 3103 makes faster."""

import torch
from torchmetrics.functional import spearman_corrcoef

import perfci


@perfci.benchmark
def spearman():
    found = torch.randint(0, 200, (20_000,)).float()
    wanted = torch.randint(0, 200, (20_000,)).float()
    return lambda: spearman_corrcoef(found, wanted)
