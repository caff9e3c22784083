"""The command line in this process: Python starts once, and workers are what a test says."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from perfci.cli.main import run
from perfci.measure.executor import Executor


@dataclass(frozen=True, slots=True)
class Done:
    """How a perfci process ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    def without_traceback(self) -> Done:
        assert "Traceback" not in self.text, self.text
        return self


def in_process(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    executor: Executor | None = None,
) -> Done:
    """Run ``perfci`` as its process would in ``folder`` with ``environment``, but for signals."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with _surroundings(folder, environment), redirect_stdout(out), redirect_stderr(err):
        code = run(arguments, executor)
    return Done(code, *(_text(stream) for stream in (out, err)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8")


@contextmanager
def _surroundings(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    before, place, cores = dict(os.environ), Path.cwd(), os.sched_getaffinity(0)
    argv, path = sys.argv, list(sys.path)
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["perfci"]
        sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
        yield
    finally:
        sys.argv, sys.path[:] = argv, path
        os.chdir(place)
        os.environ.clear()
        os.environ.update(before)
        os.sched_setaffinity(0, cores)
