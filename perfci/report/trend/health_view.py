"""The gate's own health in words and small charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perfci.report.trend.catalogue import Catalogue, shown
from perfci.report.trend.sparkline import Spark, spark
from perfci.report.trend.words import day
from perfci.trend.change import Health, RunnerDrift
from perfci.units import counted, format_change

_MOST_NIGHTS = 60
_STRIP_WIDTH, _STRIP_HEIGHT = 320.0, 48.0


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure: its name, the number, and what it was told from."""

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
    """The nights without a run on one environment."""

    environment: str
    count: int
    dates: tuple[str, ...]
    more: int


def tiles(health: Health) -> tuple[Tile, ...]:
    """Return the figures of the gate; what can't be told says what it would need."""
    return (
        Tile("False alarms", *_alarms(health)),
        Tile("Inconclusive", *_inconclusive(health)),
        Tile("Missing nights", *_missing(health.missing_nights)),
    )


def runner_rows(health: Health, listed: Catalogue) -> tuple[RunnerRow, ...]:
    """Return a row for each runner that has a line to show."""
    return tuple(_runner(drift, listed) for drift in health.runner_drift if drift.ratios)


def missing_rows(health: Health, listed: Catalogue) -> tuple[MissingRow, ...]:
    """Return the environments that lack nights, the newest nights first."""
    return tuple(
        MissingRow(
            environment=listed.labels.get(environment, shown(environment)),
            count=len(nights),
            dates=tuple(sorted(nights, reverse=True)[:_MOST_NIGHTS]),
            more=max(0, len(nights) - _MOST_NIGHTS),
        )
        for environment, nights in health.missing_nights.items()
        if nights
    )


def share_text(share: float) -> str:
    """Return a share in per cent; a small one is not rounded to none."""
    if 0.0 < share < 0.0005:
        return "< 0.1 %"
    return f"{share * 100.0:.1f} %"


def _alarms(health: Health) -> tuple[str, str]:
    rate = health.false_alarm_rate
    if rate is None:
        return "not known", "No report compared a commit with itself: record A/A runs to know."
    basis = f"{health.same_failed:,} of {health.same_reports:,} A/A reports failed"
    if health.same_failed == 0:
        # Clopper and Pearson's 95 % bound for none in n
        bound = 1.0 - 0.05 ** (1.0 / health.same_reports)
        basis += f"; the rate is below {share_text(bound)}"
    return share_text(rate), basis


def _inconclusive(health: Health) -> tuple[str, str]:
    share = health.inconclusive_share
    if share is None:
        return "not known", "No comparison is recorded: `perfci compare --record` does."
    basis = f"{health.inconclusive:,} of {health.comparisons:,} gating comparisons"
    return share_text(share), f"{basis}, in {counted(health.reports, 'report')}"


def _missing(nights: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    count = sum(len(dates) for dates in nights.values())
    lacking = sum(bool(dates) for dates in nights.values())
    if not count:
        return "0", "every night has a run"
    if len(nights) == 1:
        return f"{count:,}", "between the first run and the last"
    return f"{count:,}", f"in {lacking} of {counted(len(nights), 'environment')}"


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
