"""Importing benchmark files by path, and saying where a user's code failed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

from perfci.bench.definition import Benchmark

_OURS = str(Path(__file__).resolve().parent.parent) + os.sep


def prepare_path(python_path: tuple[str, ...]) -> None:
    """Put the side's folders first on ``sys.path``."""
    sys.path[:0] = [folder for folder in python_path if folder not in sys.path]


def load(file: str) -> ModuleType:
    """Import one benchmark file under a name of its own; its folder serves its own imports."""
    folder = str(Path(file).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    digest = hashlib.sha256(file.encode()).hexdigest()[:8]
    name = f"perfci_benchmarks_{Path(file).stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def benchmarks_in(module: ModuleType) -> tuple[Benchmark, ...]:
    """Return the benchmarks that the module's own file defines, in the order of their lines."""
    own = {
        id(value): value
        for value in vars(module).values()
        if isinstance(value, Benchmark) and Path(value.file).samefile(module.__file__ or "")
    }
    return tuple(sorted(own.values(), key=lambda benchmark: benchmark.line))


def source_hash(file: str) -> str:
    """Return the version of a benchmark's meaning: a hash of its whole file."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]


def where_it_failed(error: BaseException, root: str) -> str:
    """Return the error's text, with the last place that isn't perfci's own."""
    text = str(error) or type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{_relative(error.filename or '?', root)}:{error.lineno}: {error.msg}"
    frames = _user_frames(error)
    mine = [frame for frame in frames if frame.filename.startswith(root + os.sep)]
    chosen = (mine or frames)[-1:]
    if not chosen:
        return text
    return f"{_relative(chosen[0].filename, root)}:{chosen[0].lineno}: {text}"


def way_to(error: BaseException) -> str:
    """Return the frames of a user's code that led to ``error``; empty where there are none."""
    frames = _user_frames(error)
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return "".join(lines) if frames else ""


def _user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((_OURS, "<frozen"))
    ]


def _relative(file: str, root: str) -> str:
    return file.removeprefix(root + os.sep)
