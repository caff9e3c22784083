"""Benchmark files as modules: their names, and how a spawned process finds them again.

``multiprocessing`` starts a Python anew under ``spawn`` and ``forkserver``, runs the main file of
the process that asked for it, and imports the modules of what it is sent. A worker's main file is
``bootstrap.py``, and its benchmark's module is in no folder under its name.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location

PREFIX = "perfci_benchmarks_"
"""Begins the name of the module that a benchmark file is imported as."""
_DOT = "__dot__"
_DIGITS = 8


def name_of(file: str) -> str:
    """Return the name of a benchmark file's module.

    The path decides it: two folders may each have a file of one name.
    """
    stem = file.rpartition("/")[2].removesuffix(".py")
    return f"{PREFIX}{stem.replace('.', _DOT)}_{crc32(file.encode()):0{_DIGITS}x}"


class BenchmarkFinder:
    """Finds a benchmark's module by its name, in the folders of ``sys.path``.

    A spawned process has its parent's, among them the folder of each benchmark file imported.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the module's spec; None where ``name`` is none of a benchmark file."""
        del path, target
        if not name.startswith(PREFIX):
            return None
        stem = name[len(PREFIX) : -_DIGITS - 1].replace(_DOT, ".")
        for folder in sys.path:
            file = f"{folder}/{stem}.py"
            if name_of(file) == name and os.path.isfile(file):  # noqa: PTH113 (pathlib takes 5 ms)
                return spec_from_file_location(name, file)
        return None


def serve_imports() -> None:
    """Let this spawned process import benchmark files, and the perfci that they ask for."""
    sys.meta_path.append(BenchmarkFinder())
