"""The analysis on all cores: it is pure, and is handed the way in which its parts are mapped."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from perfci.errors import OutsideError

RunAll = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]

_FEW = 300
"""Series: below this, starting a second process takes longer than the analysis."""


@contextmanager
def run_all_on_cores(series: int) -> Iterator[RunAll]:
    """Yield ``map``, or for many ``series`` one that uses every core of this process."""
    cores = len(os.sched_getaffinity(0))
    if series < _FEW or cores < 2:
        yield map
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    # not forked: a database's connection and numpy's threads are none of a child's business
    pool = ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("forkserver"))
    try:
        yield pool.map
    except BrokenProcessPool as error:
        raise OutsideError(
            "analysis-killed",
            "the system ended a process of the analysis: memory ran out?",
            "Give it more memory, or thin the history with `perfci history prune`.",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
