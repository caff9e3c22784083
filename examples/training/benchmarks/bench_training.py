"""Steps of ``train.py``, as ``torchrun --nproc-per-node 2 train.py`` makes them.

    cd examples/training && perfci run

Ranks are forked, so they have what this file imports: the script's own imports take no time then.
"""

import torch._dynamo  # optimizers import it
import torch.distributed.fsdp  # noqa: F401 (the script does)

import perfci

RANKS, BATCH = 2, 8


@perfci.benchmark(parallel=["ddp", "fsdp2"])
def training(parallel):
    return perfci.torchrun(
        ["train.py", "--parallel", parallel],
        ranks=RANKS,
        steps=(5, 65),
        items=RANKS * BATCH,
        start_method="fork",
    )
