"""Analysed histories made by hand: what the analysis would say of series with known truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from perfci.model.run import RunHeader
from perfci.trend import Change, ChangeStatus, Drift, Series, SeriesKey, Timeline, Trend
from perfci.trend.events import group_events
from tests.builders.recorded import header

GPU, CPU = "linux-x86_64-h200-torch2.9-py3.12-aa", "linux-x86_64-epyc-torch2.9-py3.12-bb"
FACTS = {
    GPU: {"device_name": "NVIDIA H200", "torch": "2.9.0", "python": "3.12.4"},
    CPU: {"device_name": "cpu", "cpu": "AMD EPYC 9454", "torch": "2.9.0", "python": "3.12.4"},
}
SUBJECTS = (
    "Fuse the attention mask into the softmax",
    "Docs: how to pin memory",
    "Pad the vocabulary to a multiple of 64",
    "Tokenizer: keep the merges in a trie",
    "Fix a race in the data loader",
    "CI: cache the wheels",
    "Rewrite the rotary embedding without complex numbers",
)
START = date(2025, 11, 21)


def run(row: int, *, sha: str = "", subject: str = "", runner: str = "runner-1") -> RunHeader:
    """Return the run of the ``row``-th day; each commit's hash can be told apart."""
    day = (START + timedelta(days=row)).isoformat()
    return header(
        row,
        sha=sha or f"{row * 2654435761 % 2**32:08x}{row:032x}",
        subject=subject or SUBJECTS[row % len(SUBJECTS)],
        committed_at=f"{day}T15:20:00+00:00",
        measured_at=f"{day}T22:05:00+00:00",
        position=100 + 3 * row,
        runner=runner,
    )


def timeline(environment: str, nights: int) -> Timeline:
    """Return a year's nights, or as many as are wanted."""
    return Timeline(environment, tuple(map(run, range(nights))), FACTS.get(environment, {}))


def series(
    case: str,
    values: Sequence[float] | NDArray,
    *,
    metric: str = "latency_p50",
    environment: str = GPU,
    unit: str = "s",
    rows: Sequence[int] | None = None,
) -> Series:
    """Return a series over the first nights, or over ``rows``."""
    at = np.arange(len(values)) if rows is None else np.asarray(rows)
    return Series(
        SeriesKey(environment, case, metric),
        unit,
        "higher" if metric == "throughput" else "lower",
        at.astype(np.int32),
        np.asarray(values, dtype=np.float64),
    )


def change(
    of: Series,
    after: int,
    ratio: float,
    *,
    timelines: Mapping[str, Timeline],
    status: ChangeStatus = "new",
    before: int | None = None,
    worse: bool | None = None,
) -> Change:
    """Return a change of ``of`` whose new level begins at ``after``."""
    nights = timelines[of.key.environment].runs
    old = after - 1 if before is None else before
    first, last = nights[int(of.rows[old])], nights[int(of.rows[after])]
    rises = ratio > 1.0
    return Change(
        id=sha256(f"{of.key}{after}".encode()).hexdigest()[:12],
        series=of.key,
        kind="step" if old == after - 1 else "ramp",
        before=old,
        after=after,
        within=(old, after),
        commits=(first.sha, last.sha),
        commits_within=(first.sha, last.sha),
        names=(first.sha, last.sha),
        at=last.committed_at,
        ratio=ratio,
        ratio_lo=ratio - 0.008,
        ratio_hi=ratio + 0.008,
        level_before=float(of.values[old]),
        level_after=float(of.values[after]),
        p=1e-9,
        q=2e-6,
        worse=(rises if of.direction == "lower" else not rises) if worse is None else worse,
        status=status,
        first_seen_at="2026-11-20T23:00:00+00:00",
    )


@dataclass
class Shapes:
    """Draws series: ``quiet`` noise with what is wanted laid over it."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    nights: int = 365

    def quiet(self, level: float, spread: float = 0.008) -> NDArray:
        """Return noise around ``level`` with a standard deviation of ``spread`` of it."""
        return level * np.exp(self.random.normal(0.0, spread, self.nights))

    def step(self, level: float, at: int, ratio: float, spread: float = 0.008) -> NDArray:
        """Return noise that is ``ratio`` times as high from ``at`` on."""
        values = self.quiet(level, spread)
        values[at:] *= ratio
        return values

    def ramp(self, level: float, start: int, end: int, ratio: float) -> NDArray:
        """Return noise that climbs from ``start`` to ``end`` to ``ratio`` times the level."""
        share = np.clip((np.arange(self.nights) - start) / (end - start), 0.0, 1.0)
        return self.quiet(level) * (1.0 + (ratio - 1.0) * share)

    def outlier(self, level: float, at: int, ratio: float) -> NDArray:
        """Return noise with one point that is ``ratio`` times too high."""
        values = self.quiet(level)
        values[at] *= ratio
        return values


def year() -> Trend:
    """Return a year of three benchmarks on two machines: steps, a ramp, and an outlier."""
    shapes = Shapes()
    lines = {key: timeline(key, 365) for key in (GPU, CPU)}
    kept = np.delete(np.arange(365), [40, 41, 42, 200, 290])
    encoder = "encoder[batch={},mode={}]".format
    all_series = [
        series(encoder(1, "eager"), shapes.step(1.23e-3, 352, 1.052)),
        series(encoder(1, "eager"), shapes.quiet(1.9e-3)[kept], environment=CPU, rows=kept),
        series(encoder(1, "eager"), shapes.step(2.4e8, 352, 1.0, 0.0), metric="peak_device_memory",
               unit="bytes"),
        series(encoder(1, "eager"), shapes.quiet(812.0), metric="throughput", unit="items/s"),
        series(encoder(16, "eager"), shapes.ramp(4.1e-3, 220, 300, 1.11)),
        series(encoder(16, "eager"), shapes.outlier(5.2e-3, 301, 2.4), environment=CPU),
        series(encoder(16, "default"), shapes.step(2.2e-3, 120, 0.83)),
        series(encoder(16, "default"), np.r_[np.zeros(355), np.ones(10)], metric="graph_breaks",
               unit="count"),
        series("tokenise", shapes.step(3.3e-4, 361, 0.914), environment=CPU),
        series("tokenise", shapes.quiet(3.3e-1), environment=CPU, metric="cold_start"),
        series("loader[workers=4]", shapes.step(8e-2, 60, 1.3), environment=CPU),
        series("loader[workers=4]", shapes.quiet(1.1e9, 0.002), environment=CPU,
               metric="peak_host_memory", unit="bytes"),
    ]  # fmt: skip
    all_series[2] = replace(all_series[2], values=np.rint(all_series[2].values))
    at = {(one.key.case, one.key.metric, one.key.environment): one for one in all_series}
    breaks = change(
        at[encoder(16, "default"), "graph_breaks", GPU], 355, 1.0, timelines=lines, worse=True
    )
    breaks = replace(
        breaks, ratio=None, ratio_lo=None, ratio_hi=None, level_before=0.0, level_after=1.0
    )
    changes = (
        change(at[encoder(1, "eager"), "latency_p50", GPU], 352, 1.052, timelines=lines),
        breaks,
        change(at["tokenise", "latency_p50", CPU], 361, 0.914, timelines=lines),
        change(at[encoder(16, "eager"), "latency_p50", GPU], 300, 1.11, timelines=lines,
               before=220, status="known"),
        change(at["loader[workers=4]", "latency_p50", CPU], 60, 1.3, timelines=lines,
               status="acknowledged"),
        change(at[encoder(16, "default"), "latency_p50", GPU], 120, 0.83, timelines=lines,
               status="known"),
    )  # fmt: skip
    drift = Drift(
        at["tokenise", "cold_start", CPU].key, run(200).sha, 30, 30, 1.021, 1.012, 1.03, 0.004,
        worse=True,
    )  # fmt: skip
    return Trend(
        created_at="2026-11-21T05:30:00+00:00",
        perfci_version="1.0.0",
        timelines=lines,
        series=tuple(all_series),
        changes=changes,
        events=group_events(changes, all_series, lines),
        drifts=(drift,),
        releases={
            run(90).sha: ("v1.4.0",),
            run(240).sha: ("v1.5.0",),
            run(330).sha: ("v1.6.0",),
        },
        notes=("2 commits are no longer on the branch (a force-push?).",),
    )


def with_changes(trend: Trend, *changes: Change) -> Trend:
    """Return ``trend`` with other changes, and the events that they are."""
    events = group_events(changes, trend.series, trend.timelines)
    return replace(trend, changes=changes, events=events)


def quiet_trend(cases: int = 1, nights: int = 5) -> Trend:
    """Return a trend in which nothing moved."""
    shapes = Shapes(nights=nights)
    return Trend(
        created_at="2026-11-21T05:30:00+00:00",
        perfci_version="1.0.0",
        timelines={GPU: timeline(GPU, nights)},
        series=tuple(series(f"work[n={n}]", shapes.quiet(1e-3)) for n in range(cases)),
        changes=(),
        drifts=(),
        releases={},
    )
