"""Where a benchmark imports the library; its metric says which code ran."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """``slug`` names the benchmark, and its file where that is its own."""

    name: str
    slug: str
    text: str


_METRIC = """
def told(markers):
    number = float("".join(map(str, markers)))
    return perfci.metric("marker", lambda: number, gate="info", exact=True)
"""

_TOP = """\
import {package}
import perfci
{metric}
@perfci.benchmark(metrics=["latency_p50"])
def top():
    return int, told({package}.markers())
"""

_INSIDE = """\
import perfci
{metric}
@perfci.benchmark(metrics=["latency_p50"])
def inside():
    import {package}

    return int, told({package}.markers())
"""

_CHILD = """\
import json
import subprocess
import sys

import perfci
{metric}
@perfci.benchmark(metrics=["latency_p50"])
def child():
    code = "import json, {package}; print(json.dumps({package}.markers()))"
    return int, told(json.loads(subprocess.check_output([sys.executable, "-c", code])))
"""

_SPAWN = """\
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import perfci
{metric}
CODE = "__import__('importlib').import_module('{package}').markers()"

@perfci.benchmark(metrics=["latency_p50"])
def spawn():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return int, told(pool.submit(eval, CODE).result())
"""

PLACES = (
    Place("top of the file", "top", _TOP),
    Place("in the function", "inside", _INSIDE),
    Place("child process", "child", _CHILD),
    Place("spawned worker", "spawn", _SPAWN),
)


def files(package: str, places: tuple[Place, ...], *, apart: bool) -> dict[str, str]:
    """Return the files of ``places`` by path: one per place if ``apart``, else two.

    The first place, the top of the file, then has one of its own.

    perfci forks a worker a benchmark from one that has imported the file alone, so that a shared
    file shows nothing less, and its imports are made once.
    """
    groups = [(place,) for place in places] if apart else [places[:1], places[1:]]
    return {
        f"benchmarks/bench_{group[0].slug}.py": "\n\n".join(
            place.text.format(package=package, metric=_METRIC) for place in group
        )
        for group in groups
    }
