"""perfci: a performance-regression gate for PyTorch.

This module is what a benchmark file imports. It needs the standard library only, because
workers import it under any Python that has torch.
"""

from perfci.bench.api import benchmark, inference, metric, training_step
from perfci.record.version import VERSION as __version__

__all__ = ["__version__", "benchmark", "inference", "metric", "training_step"]
