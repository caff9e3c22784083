"""The benchmarks and series of a trend in the order in which it lists them, and how each stands."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from perfci.metrics import METRICS
from perfci.model.run import Environment
from perfci.report.links import names_of
from perfci.report.site.words import shown
from perfci.trend import Change, Drift, Series, SeriesKey, Trend, benchmark_of

Word = Literal["worse", "drifting", "better", "too_few"]
_NUMBER = re.compile(r"(\d+)")
_STEADY = 4
"""The urgency of a series without a standing."""


@dataclass(frozen=True, slots=True)
class SeriesStanding:
    """The present state of a series, with the ``change`` or ``drift`` that is the reason.

    ``new``: the change came since the last report. ``word`` is ``too_few`` if the series has too
    few runs to judge whether it is steady.
    """

    word: Word
    new: bool
    change: Change | None = None
    drift: Drift | None = None

    @property
    def urgency(self) -> int:
        """The order of standings: new and worse, still worse, drifting, better, the others."""
        if self.word == "worse":
            return 0 if self.new else 1
        return {"drifting": 2, "better": 3, "too_few": _STEADY}[self.word]


def standings(trend: Trend) -> dict[SeriesKey, SeriesStanding]:
    """Return the most urgent standing of each series. Steady series are left out."""
    known = [(key, SeriesStanding("too_few", False)) for key in trend.too_few]
    for change in trend.changes:
        new = change.status == "new"
        if new or (change.worse and change.status == "known"):
            word: Word = "worse" if change.worse else "better"
            known.append((change.series, SeriesStanding(word, new, change)))
    known += [
        (drift.series, SeriesStanding("drifting", False, drift=drift))
        for drift in trend.drifts
        if drift.worse
    ]
    standing: dict[SeriesKey, SeriesStanding] = {}
    for key, each in sorted(known, key=lambda entry: entry[1].urgency):
        standing.setdefault(key, each)
    return standing


@dataclass(frozen=True, slots=True)
class ListedBenchmark:
    """One benchmark and its page. ``series`` are in the order in which the page shows them."""

    name: str
    slug: str
    series: tuple[Series, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All benchmarks, sorted by name, and the environments.

    ``indices`` maps an environment's key to its index, which data files use. ``labels`` maps it to
    its name for people.
    """

    benchmarks: tuple[ListedBenchmark, ...]
    indices: Mapping[str, int]
    labels: Mapping[str, str]


def catalogue(trend: Trend, standings: Mapping[SeriesKey, SeriesStanding]) -> Catalogue:
    """Return the catalogue of ``trend``. Each benchmark's series are sorted, moved ones first.

    A series that ``standings`` lacks is steady.
    """
    grouped: dict[str, list[Series]] = {}
    for series in trend.series:
        grouped.setdefault(benchmark_of(series.key.case), []).append(series)
    benchmarks = [
        ListedBenchmark(name, slug(name), _in_order(grouped[name], standings))
        for name in sorted(grouped, key=_natural)
    ]
    keys = tuple(trend.timelines)
    labels = names_of([Environment(key, trend.timelines[key].facts) for key in keys])
    return Catalogue(
        benchmarks=tuple(benchmarks),
        indices={key: index for index, key in enumerate(keys)},
        labels=dict(zip(keys, labels, strict=True)),
    )


def slug(benchmark: str) -> str:
    """Return a file name for a benchmark of any name. It is the same in every report."""
    digest = hashlib.sha256(benchmark.encode("utf-8", "backslashreplace")).hexdigest()[:10]
    plain = re.sub(r"[^a-z0-9]+", "-", benchmark[:200].lower())[:40].strip("-")
    return f"{plain}-{digest}" if plain else digest


def _in_order(
    members: Sequence[Series], standings: Mapping[SeriesKey, SeriesStanding]
) -> tuple[Series, ...]:
    """Return a benchmark's series, those of the case with the most urgent standing first."""
    own = {
        each.key: standings[each.key].urgency if each.key in standings else _STEADY
        for each in members
    }
    of_case: dict[str, int] = {}
    for key, urgency in own.items():
        of_case[key.case] = min(of_case.get(key.case, _STEADY), urgency)
    order = {name: index for index, name in enumerate(METRICS)}

    def position(series: Series) -> tuple[object, ...]:
        key = series.key
        case = (of_case[key.case], _natural(key.case))
        return (*case, own[key], order.get(key.metric, 99), key.metric, key.environment)

    return tuple(sorted(members, key=position))


def _natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts ``batch=2`` before ``batch=16``."""
    parts = _NUMBER.split(text)
    return tuple(
        (1, int(part), part) if index % 2 and len(part) < 20 and part.isascii() else (0, 0, part)
        for index, part in enumerate(parts)
    )


def link(key: SeriesKey) -> str:
    """Return a series' chart as an address relative to the overview, the same in every report."""
    parts = "/".join(
        quote(text.encode("utf-8", "backslashreplace"), safe="")
        for text in (shown(key.case), shown(key.metric), shown(key.environment))
    )
    return f"benchmarks/{slug(benchmark_of(key.case))}.html#{parts}"
