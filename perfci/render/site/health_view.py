"""The gate's own health in words and small charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfci.render.site.catalogue import Catalogue, shown
from perfci.render.site.sparkline import Spark, spark
from perfci.render.site.words import day
from perfci.trend.change import Health, RunnerDrift
from perfci.units import counted, format_change, format_share

_MOST_DATES = 60
_FEWEST_REPORTS = 20
"""With fewer, a gate that has never failed may still fail one report in seven."""
_STRIP_WIDTH, _STRIP_HEIGHT = 320.0, 48.0


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure: its name, the number, and what it was computed from."""

    name: str
    figure: str
    basis: str


@dataclass(frozen=True, slots=True)
class RunnerRow:
    """How one runner's speed moved: the line, its ends, and the range."""

    runner: str
    environment: str
    spark: Spark
    first: str
    last: str
    range: str
    newest: str


@dataclass(frozen=True, slots=True)
class MissingRow:
    """The dates without a run on one environment."""

    environment: str
    count: int
    dates: tuple[str, ...]
    more: int


def tiles(health: Health) -> tuple[Tile, ...]:
    """Return the figures of the gate; what isn't known says what it would need."""
    return (
        Tile("False alarms", *_alarms(health)),
        Tile("Inconclusive", *_inconclusive(health)),
        Tile("Missing dates", *_missing(health.missing_nights, health.days_since_run)),
    )


def runner_rows(health: Health, listed: Catalogue) -> tuple[RunnerRow, ...]:
    """Return a row for each runner that has a line to show."""
    return tuple(_runner(drift, listed) for drift in health.runner_drift if drift.ratios)


def missing_rows(health: Health, listed: Catalogue) -> tuple[MissingRow, ...]:
    """Return the environments that lack dates, the newest dates first."""
    return tuple(
        MissingRow(
            environment=listed.labels.get(environment, shown(environment)),
            count=len(dates),
            dates=tuple(sorted(dates, reverse=True)[:_MOST_DATES]),
            more=max(0, len(dates) - _MOST_DATES),
        )
        for environment, dates in health.missing_nights.items()
        if dates
    )


def _alarms(health: Health) -> tuple[str, str]:
    rate = health.false_alarm_rate
    if rate is None:
        return "not known", "No report compared a commit with itself: record A/A runs to know."
    reports = counted(health.same_reports, "A/A report")
    basis = f"{health.same_failed:,} of {reports} failed"
    if health.same_reports < _FEWEST_REPORTS:
        return "not known", f"{basis}: too few for a rate"
    if health.same_failed == 0:
        # Clopper and Pearson's 95 % bound for none in n
        bound = 1.0 - 0.05 ** (1.0 / health.same_reports)
        basis += f"; the rate is below {format_share(bound)}"
    return format_share(rate), basis


def _inconclusive(health: Health) -> tuple[str, str]:
    share = health.inconclusive_share
    if share is None:
        return "not known", "No comparison is recorded: `perfci compare --record` does."
    basis = f"{health.inconclusive:,} of {health.comparisons:,} gating comparisons"
    return format_share(share), f"{basis}, in {counted(health.reports, 'report')}"


def _missing(missing: Mapping[str, tuple[str, ...]], since: Mapping[str, int]) -> tuple[str, str]:
    count = sum(len(dates) for dates in missing.values())
    lacking = sum(bool(dates) for dates in missing.values())
    late = _late(since)
    if not count:
        return "0", f"between runs; {late}" if late else "every date has a run"
    where = f"in {lacking} of {counted(len(missing), 'environment')}"
    if len(missing) == 1:
        where = "between the first run and the last"
    return f"{count:,}", f"{where}; {late}" if late else where


def _late(since: Mapping[str, int]) -> str:
    """Return how long ago the last run was, which no gap between runs can show."""
    late = [days for days in since.values() if days > 1]  # today's is to come
    if not late:
        return ""
    if len(since) == 1:
        return f"the last run is {late[0]:,} days old"
    where = f"{len(late)} of {counted(len(since), 'environment')}"
    return f"the last run is up to {max(late):,} days old in {where}"


def _runner(drift: RunnerDrift, listed: Catalogue) -> RunnerRow:
    import numpy as np

    ratios = np.asarray(drift.ratios, dtype=np.float64)
    lo, hi = format_change(float(ratios.min())), format_change(float(ratios.max()))
    return RunnerRow(
        runner=shown(drift.runner) or "unnamed runner",
        environment=listed.labels.get(drift.environment, shown(drift.environment)),
        spark=spark(ratios, width=_STRIP_WIDTH, height=_STRIP_HEIGHT),
        first=day(drift.dates[0]) if drift.dates else "",
        last=day(drift.dates[-1]) if drift.dates else "",
        range=f"{lo.removesuffix(' %')} … {hi}",
        newest=format_change(float(ratios[-1])),
    )
