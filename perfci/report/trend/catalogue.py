"""The series as the site lists them: benchmarks, each with its cases, each with its metrics."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfci.record.metric import METRICS
from perfci.record.run import Environment
from perfci.report.clean import clean_line
from perfci.report.facts import names_of
from perfci.report.trend.standing import Standing
from perfci.trend.change import Trend
from perfci.trend.series import Series, SeriesKey

LONGEST_NAME = 200
_NUMBER = re.compile(r"(\d+)")
_METRIC_ORDER = {name: place for place, name in enumerate(METRICS)}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One benchmark and its page. ``series`` are in the order in which the page shows them."""

    name: str
    slug: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All benchmarks by name; environments by key with their place and the name people read."""

    benchmarks: tuple[Benchmark, ...]
    places: Mapping[str, int]
    labels: Mapping[str, str]

    def slug_of(self, case: str) -> str:
        """Return the name of the page's file on which ``case`` is."""
        return slug(benchmark_of(case))


def catalogue(trend: Trend, standings: Mapping[SeriesKey, Standing]) -> Catalogue:
    """Return the benchmarks of ``trend``; on a page what moved comes first.

    What is not in ``standings`` is steady.
    """
    grouped: dict[str, list[Series]] = {}
    for series in trend.series:
        grouped.setdefault(benchmark_of(series.key.case), []).append(series)
    benchmarks = [
        Benchmark(name, slug(name), _in_order(grouped[name], standings))
        for name in sorted(grouped, key=_natural)
    ]
    keys = tuple(trend.timelines)
    labels = names_of([Environment(key, trend.timelines[key].facts) for key in keys])
    return Catalogue(
        benchmarks=tuple(benchmarks),
        places={key: place for place, key in enumerate(keys)},
        labels=dict(zip(keys, labels, strict=True)),
    )


def benchmark_of(case: str) -> str:
    """Return the benchmark that ``case`` belongs to: what stands before its axes."""
    return case.partition("[")[0] or case


def axes_of(case: str) -> str:
    """Return what tells ``case`` from the benchmark's others; nothing where it is the only one."""
    rest = case[len(benchmark_of(case)) :]
    return rest[1:-1] if rest.startswith("[") and rest.endswith("]") else rest


def slug(benchmark: str) -> str:
    """Return a file name for a benchmark, the same in every report, whatever its letters."""
    digest = hashlib.sha256(benchmark.encode("utf-8", "backslashreplace")).hexdigest()[:10]
    plain = re.sub(r"[^a-z0-9]+", "-", benchmark[:200].lower())[:40].strip("-")
    return f"{plain}-{digest}" if plain else digest


def shown(name: str) -> str:
    """Return a stranger's name as one visible line."""
    return clean_line(name, LONGEST_NAME)


def _in_order(
    members: Sequence[Series], standings: Mapping[SeriesKey, Standing]
) -> tuple[Series, ...]:
    own = {one.key: standings[one.key].urgency if one.key in standings else 9 for one in members}
    urgency: dict[str, int] = {}
    for key, its in own.items():
        urgency[key.case] = min(urgency.get(key.case, 9), its)

    def place(one: Series) -> tuple[object, ...]:
        key = one.key
        metric = _METRIC_ORDER.get(key.metric, len(_METRIC_ORDER))
        case = (urgency[key.case], _natural(key.case))
        return (*case, own[key], metric, key.metric, key.environment)

    return tuple(sorted(members, key=place))


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Order ``batch=2`` before ``batch=16``."""
    parts = _NUMBER.split(text)
    return tuple(
        (1, int(part), part) if place % 2 and len(part) < 20 and part.isascii() else (0, 0, part)
        for place, part in enumerate(parts)
    )
