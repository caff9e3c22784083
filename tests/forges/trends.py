"""Small trends to tell others of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perfci.model.run import RunHeader
from perfci.trend import Change, Drift, Health, Series, SeriesKey, Timeline, Trend, TrendEvent
from tests.builders.recorded import header

ENVIRONMENT = "linux-x86_64-cpu-torch2.13.0-py3.11-1a2b3c4d"
CASE = "encoder[batch=1,mode=eager]"
KEY = SeriesKey(ENVIRONMENT, CASE, "latency_p50")
SHAS = tuple(f"{number:x}" * 40 for number in range(1, 9))


def run(number: int) -> RunHeader:
    day = f"2026-11-0{number + 1}"
    return header(
        number,
        sha=SHAS[number],
        committed_at=f"{day}T12:00:00+00:00",
        measured_at=f"{day}T22:00:00+00:00",
        runner="bench-1",
    )


def series(key: SeriesKey = KEY, unit: str = "s", values: Sequence[float] = (1, 1, 2, 2)) -> Series:
    rows = np.arange(len(values), dtype=np.int32)
    return Series(key, unit, "lower", rows, np.array(values, dtype=np.float64))


def change(identity: str = "c1", key: SeriesKey = KEY, **changed: Any) -> Change:
    fields: dict[str, Any] = {
        "id": identity,
        "series": key,
        "kind": "step",
        "before": 1,
        "after": 2,
        "within": (1, 2),
        "commits": (SHAS[1], SHAS[2]),
        "names": (SHAS[1], SHAS[2]),
        "at": "2026-11-03T12:00:00+00:00",
        "ratio": 1.25,
        "ratio_lo": 1.2,
        "ratio_hi": 1.3,
        "difference": 0.25,
        "p": 1e-6,
        "q": 1e-5,
        "worse": True,
    }
    fields |= changed
    return Change(**({"commits_within": fields["commits"]} | fields))


def drift(key: SeriesKey = KEY) -> Drift:
    return Drift(key, SHAS[0], 14, 10, 1.04, 1.02, 1.06, 0.001, worse=True)


def health(**changed: Any) -> Health:
    fields: dict[str, Any] = {
        "same_reports": 20,
        "same_failed": 1,
        "reports": 50,
        "comparisons": 400,
        "inconclusive": 8,
    }
    return Health(**(fields | changed))


def event(*changes: Change, identity: str = "", **changed: Any) -> TrendEvent:
    """Return the event of ``changes``, which goes by the first one's id."""
    fields: dict[str, Any] = {
        "id": identity or changes[0].id,
        "kind": "code",
        "environment": changes[0].series.environment,
        "changes": changes,
        "back": (),
        "rows": (1, 2),
        "commits": changes[0].commits,
        "at": changes[0].at,
        "ended_at": "",
        "measured": 200,
        "evidence": (),
    }
    return TrendEvent(**(fields | changed))


def trend(**changed: Any) -> Trend:
    """Return a trend of one environment with four nights, and one series with a new regression.

    Each change is an event of its own, where no others are given.
    """
    fields: dict[str, Any] = {
        "created_at": "2026-11-08T03:00:00+00:00",
        "perfci_version": "0.1.0",
        "timelines": {ENVIRONMENT: Timeline(ENVIRONMENT, tuple(map(run, range(4))))},
        "series": (series(),),
        "changes": (change(),),
        "drifts": (),
        "health": health(),
        "releases": {},
    }
    fields |= changed
    return Trend(**({"events": tuple(map(event, fields["changes"]))} | fields))


def many(count: int, **changed: Any) -> tuple[Change, ...]:
    """Return that many changes, each of a case of its own."""
    return tuple(
        change(f"id{number}", KEY._replace(case=f"case{number}"), **changed)
        for number in range(count)
    )
