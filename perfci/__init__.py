"""perfci: a performance-regression gate for PyTorch.

This module is what a benchmark file imports, and the library's own names. Importing it needs the
standard library only, because workers import it under any Python that has torch.
"""

from __future__ import annotations

from perfci import version as _version

TYPE_CHECKING = False  # typing's own costs `perfci --help` 3 ms; type checkers know this name
if TYPE_CHECKING:
    from perfci.api.definition import benchmark, inference, metric, training_step
    from perfci.api.distributed import distributed, torchrun
    from perfci.api.distributed.rank import step
    from perfci.api.programs import command
    from perfci.api.scripts import script, timer
    from perfci.api.serving.load import generate
    from perfci.api.serving.server import server
    from perfci.baselines import Baselines
    from perfci.commands.library import check, compare, load
    from perfci.errors import PerfciError
    from perfci.history.arrays import History
    from perfci.model.report import Report

__version__ = _version.VERSION

__all__ = [
    "Baselines",
    "History",
    "PerfciError",
    "Report",
    "__version__",
    "benchmark",
    "check",
    "command",
    "compare",
    "distributed",
    "generate",
    "inference",
    "load",
    "metric",
    "script",
    "server",
    "step",
    "timer",
    "torchrun",
    "training_step",
]

_LIBRARY = "perfci.commands.library"
_DEFINITION = "perfci.api.definition"
_MODULES = {
    **dict.fromkeys(("benchmark", "inference", "metric", "training_step"), _DEFINITION),
    "command": "perfci.api.programs",
    **dict.fromkeys(("script", "timer"), "perfci.api.scripts"),
    **dict.fromkeys(("distributed", "torchrun"), "perfci.api.distributed"),
    "step": "perfci.api.distributed.rank",
    "generate": "perfci.api.serving.load",
    "server": "perfci.api.serving.server",
    **dict.fromkeys(("check", "compare", "load"), _LIBRARY),
    "Baselines": "perfci.baselines",
    "History": "perfci.history.arrays",
    "PerfciError": "perfci.errors",
    "Report": "perfci.model.report",
}


def __getattr__(name: str) -> object:
    """Import on demand: a worker has neither the library's dependencies nor the command line."""
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'perfci' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
