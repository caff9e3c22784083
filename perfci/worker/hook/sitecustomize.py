"""Run by ``site`` in each Python child of a worker. The side's code comes first here, too."""

import sys
from importlib.machinery import PathFinder

from perfci_watch import begin_in_child

begin_in_child()


def _run_the_shadowed_one() -> None:
    """Run the environment's own ``sitecustomize``, if any: this file is found in its place."""
    here = __file__.rpartition("/")[0]
    spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if entry != here])
    if spec is not None and spec.loader is not None:
        module = type(sys)("sitecustomize")  # importlib.util would take 3 ms to import
        module.__spec__, module.__file__, module.__loader__ = spec, spec.origin, spec.loader
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_run_the_shadowed_one()
