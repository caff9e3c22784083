"""torchmetrics' functional metrics, as an evaluation loop calls them."""

import torch
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_confusion_matrix
from torchmetrics.functional.regression import mean_squared_error

import perfci


@perfci.benchmark
def accuracy():
    predicted, target = torch.randn(256, 10), torch.randint(10, (256,))
    return lambda: multiclass_accuracy(predicted, target, num_classes=10)


@perfci.benchmark
def confusion():
    predicted, target = torch.randint(10, (1024,)), torch.randint(10, (1024,))
    return lambda: multiclass_confusion_matrix(predicted, target, num_classes=10)


@perfci.benchmark
def squared_error():
    predicted, target = torch.randn(4096), torch.randn(4096)
    return lambda: mean_squared_error(predicted, target)
