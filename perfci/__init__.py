"""perfci: a performance-regression gate for PyTorch.

This module is what a benchmark file imports. It needs the standard library only, because
workers import it under any Python that has torch.
"""

from __future__ import annotations

from perfci.model import version as _version

TYPE_CHECKING = False  # typing's own costs `perfci --help` 3 ms; type checkers know this name
if TYPE_CHECKING:
    from perfci.api.functions import benchmark, inference, metric, training_step

__version__ = _version.VERSION

__all__ = ["__version__", "benchmark", "inference", "metric", "training_step"]


def __getattr__(name: str) -> object:
    """Import the benchmark API when a benchmark file asks for it; the command line never does."""
    if name in __all__:
        from perfci.api import functions as api

        return getattr(api, name)
    raise AttributeError(f"module 'perfci' has no attribute {name!r}")
