"""The worker's first file: run by path, under any Python, with nothing of perfci installed.

    PYTHON -P bootstrap.py ORDER_FD RESULT_FD TURN_FD SPAWNED_NS

It loads the package ``perfci`` from this file's folder straight into ``sys.modules``. So
``sys.path`` stays as it is, and nothing of the parent's environment leaks into the side's. A
process that a benchmark spawns by ``multiprocessing`` runs this file again, and gets the same
package.
"""

import time

# Read before any other import: the interpreter's phase of the start ends here.
STARTED_NS = time.monotonic_ns()

import importlib.util  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402


def _register_package() -> None:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (pathlib takes 5 ms)
    spec = importlib.util.spec_from_file_location(
        "perfci", f"{here}/__init__.py", submodule_search_locations=[here]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {here}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["perfci"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _register_package()
    from perfci.worker.main import main
    from perfci.worker.protocol import WorkerDescriptors

    *ends, spawned_ns = map(int, sys.argv[1:])
    main(WorkerDescriptors(*ends), spawned_ns, STARTED_NS)
elif __name__ == "__mp_main__":  # in a process that multiprocessing spawned
    _register_package()
    from perfci.worker.loading import BenchmarkFinder

    sys.meta_path.append(BenchmarkFinder())
