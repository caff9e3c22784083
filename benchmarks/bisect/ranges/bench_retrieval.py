"""A mean reciprocal rank of queries with large numbers, as in torchmetrics' issue 3290."""

import torch
from torchmetrics.retrieval import RetrievalMRR

import perfci


@perfci.benchmark
def retrieval():
    queries = torch.arange(200).repeat_interleave(10) * 50_021
    found, wanted = torch.rand(2_000), torch.randint(0, 2, (2_000,))

    def call():
        metric = RetrievalMRR()
        metric.update(found, wanted, indexes=queries)
        return metric.compute()

    return call
