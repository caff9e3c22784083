"""One comparison in words: change, interval, test, recorded values and remarks.

The texts are plain: each format escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from perfci.finding import Method
from perfci.metrics import METRICS
from perfci.model.report import Accepted, Comparison, Estimate
from perfci.model.status import Cause, Sense, traits
from perfci.report.clean import clean_line
from perfci.stats.evidence import magnitude
from perfci.units import (
    counted,
    format_change,
    format_difference,
    format_interval,
    format_share,
    format_value,
)
from perfci.verdict.caveats import cause_of
from perfci.verdict.policy import worsening

_TEST_NAMES: dict[Method, str] = {
    "paired_t": "paired t",
    "welch_t": "Welch's t",
    "exact": "exact",
    "none": "",
}
_GATES = {"fail": "fails the report", "warn": "warns", "info": "informs"}
BLAME: dict[Cause, str] = {
    "code": "what differs between the sides",
    "noise": "variance between processes",
    "machine": "something else ran, or the machine throttled",
    "method": "how it was measured: too few rounds, too coarse, or not comparable",
}
"""The meaning of each cause but the empty one."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A comparison in words. ``index`` is its position in the report.

    A text about something that the comparison lacks is empty. ``looks_slower``: it is undecided,
    and the verdict names it for that.
    """

    comparison: Comparison
    index: int = 0
    looks_slower: bool = False

    @property
    def case(self) -> str:
        """The case's id."""
        return self.comparison.case

    @property
    def has_numbers(self) -> bool:
        """Whether a side has numbers. If not, the row stands for its whole case."""
        return self.comparison.base is not None or self.comparison.head is not None

    @property
    def metric(self) -> str:
        """The metric's name, or nothing if the row stands for its whole case."""
        return self.comparison.metric if self.has_numbers else ""

    @property
    def status(self) -> str:
        """The status in words, or ``accepted`` if the regression is accepted."""
        return "accepted" if self.comparison.accepted else self.comparison.status.replace("_", " ")

    @property
    def sense(self) -> Sense:
        """Whether the row got worse or better."""
        return traits(self.comparison.status).sense

    @property
    def gates(self) -> bool:
        """Whether the row can fail the report."""
        return self.comparison.gate == "fail" and not self.comparison.accepted

    @property
    def cause(self) -> Cause:
        """The likely cause of the status."""
        return cause_of(self.comparison)

    @property
    def is_absolute(self) -> bool:
        """Whether the change is a difference in the metric's unit, not a ratio."""
        return self.comparison.difference is not None

    @property
    def change_and_interval(self) -> tuple[float | None, float | None, float | None]:
        """The change and the ends of its interval."""
        row = self.comparison
        if self.is_absolute:
            return row.difference, row.difference_lo, row.difference_hi
        return row.ratio, row.ratio_lo, row.ratio_hi

    @property
    def rises(self) -> bool | None:
        """Whether head has more than base, or None if that is unknown."""
        change = self.change_and_interval[0]
        return None if change is None else change > (0.0 if self.is_absolute else 1.0)

    @property
    def before(self) -> str:
        """Base's value, or a dash."""
        return side_text(self.comparison.base, self.comparison.unit)

    @property
    def after(self) -> str:
        """Head's value, or a dash."""
        return side_text(self.comparison.head, self.comparison.unit)

    @property
    def values(self) -> str:
        """Both sides' values, ``222 → 286 µs``, or head's alone if base has none."""
        if self.comparison.base is None:
            return self.after if self.comparison.head else ""
        number, _, unit = self.before.partition(" ")
        common = unit and self.after.endswith(f" {unit}")
        return f"{number if common else self.before} → {self.after}"

    @property
    def head_interval(self) -> str:
        """Head's own interval, ``1.2 ms … 1.3 ms``."""
        head, unit = self.comparison.head, self.comparison.unit
        if head is None or head.lo is None or head.hi is None or head.lo == head.hi:
            return ""
        return f"{format_value(head.lo, unit)} … {format_value(head.hi, unit)}"

    @property
    def change(self) -> str:
        """The change head against base: ``+5.2 %``, or ``+1`` for an absolute metric."""
        row = self.comparison
        if row.status == "failed" and not self.has_numbers:
            return "failed"
        if row.difference is not None:
            return format_difference(row.difference, row.unit)
        if row.status == "regressed" and row.head is None:  # it has no graph, so no breaks
            return "not compiled"
        return format_change(row.ratio)

    @property
    def interval(self) -> str:
        """The change's 95 % interval, ``+4.1 … +6.3 %``."""
        change, lo, hi = self.change_and_interval
        if lo is None or hi is None or lo == hi:
            return ""
        if not self.is_absolute:
            return format_interval(lo, hi, like=change)
        first, last = (format_difference(end, self.comparison.unit) for end in (lo, hi))
        return f"{first} … {last}"

    @property
    def bracketed_interval(self) -> str:
        """The interval to stand behind the change, which has its unit: ``(+4.1…+6.3)``."""
        text = self.interval
        if not self.is_absolute:
            text = text.removesuffix(" %").replace(" … ", "…")
        return f"({text})" if text else ""

    @property
    def threshold(self) -> str:
        """The threshold: how far the metric may change."""
        unit = self.comparison.unit if self.is_absolute else ""
        return _amount(self.comparison.threshold, unit) if self.has_numbers else ""

    @property
    def sample(self) -> str:
        """The number of pairs or of both sides' workers, or ``exact``."""
        base = self.comparison.base.workers if self.comparison.base else 0
        head = self.comparison.head.workers if self.comparison.head else 0
        match self.comparison.method:
            case "paired_t":
                return counted(head, "pair")
            case "welch_t":
                anchors = self.comparison.anchors
                known = f", {counted(anchors, 'anchor')}" if anchors else ""
                return f"{base} + {counted(head, 'worker')}{known}"
            case "exact":
                return "exact"
            case "none":
                return counted(head, "worker") if head else ""

    @property
    def remarks(self) -> str:
        """Remarks: confirmed, accepted or only informing, and the warnings."""
        return "; ".join(filter(None, self._remarks()))

    def _remarks(self) -> Iterator[str]:
        row = self.comparison
        if row.confirmed is not None:  # a second measurement was due
            measured = "confirmed" if row.status == "regressed" else "measured together"
            yield measured if row.confirmed else "unconfirmed"
        if row.accepted:
            yield _accepted_text(row.accepted, self.comparison)
        elif row.status == "regressed" and row.gate != "fail":
            yield "warns only" if row.gate == "warn" else "for information"
        if row.status == "inconclusive" and row.detectable is not None and not row.findings:
            yield f"a change of {format_share(row.detectable)} would have been detected"
        yield from row.warnings

    @property
    def note(self) -> str:
        """The number of pairs or workers, and the remarks."""
        return "; ".join(filter(None, (self.sample, self.remarks)))

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """All facts about the row's test and policy, as terms with their values.

        The p-value is ``p``. Adjusted for all tests of the report, it is ``p adjusted``.
        """
        row, d, detectable = self.comparison, self.comparison.cohens_d, self.comparison.detectable
        facts = {
            "test": self._test(),
            "p": _p_text(row.p),
            "p adjusted": _p_text(row.p_adjusted),
            "Cohen's d": "" if d is None else f"{d:.2f} ({magnitude(d)})",
            "could detect": "" if detectable is None else format_share(detectable),
            "threshold": self.threshold,
            "gate": _GATES[row.gate],
            "disturbed by": row.disturbance,
        }
        return tuple((term, text) for term, text in facts.items() if text)

    def _test(self) -> str:
        """Return the test with its n and degrees of freedom: ``paired t, 7 pairs, df 6``."""
        row, name = self.comparison, _TEST_NAMES[self.comparison.method]
        n = "" if row.method == "exact" else self.sample
        freedom = "" if row.df is None else f"df {row.df:.3g}"
        test = ", ".join(filter(None, (name, n, freedom)))
        if row.welch_p is not None and (row.anchors or row.confirmed):
            test += f"; Welch's p {_p_text(row.welch_p)} against the stored sessions"
        return test

    @property
    def thresholds_moved(self) -> float:
        """The size of the change in thresholds, in either direction. Infinite if it is unknown."""
        worse = worsening(self.comparison)
        known = worse.threshold > 0.0 and not math.isnan(worse.change)
        return abs(worse.change) / worse.threshold if known else math.inf


def side_text(estimate: Estimate | None, unit: str) -> str:
    """Return one side's centre, or a dash."""
    return format_value(estimate.center if estimate else None, unit)


def metric_words(metric: str) -> str:
    """Return perfci's own metric in a reader's words, and any other by its name.

    >>> metric_words("latency_p50"), metric_words("graph_breaks")
    ('latency', 'graph breaks')
    """
    if metric not in METRICS:
        return metric
    return metric.removesuffix("_p50").replace("_", " ")


def _accepted_text(accepted: Accepted, row: Comparison) -> str:
    """Return who accepted the row, why, up to which change and until when."""
    by = f" by {clean_line(accepted.by, 80)}" if accepted.by else ""
    bounds = []
    if accepted.up_to is not None:
        unit = row.unit if row.difference is not None else ""
        bounds.append(f"up to {_amount(accepted.up_to, unit)}")
    if accepted.until:
        bounds.append(f"until {accepted.until}")
    within = f" ({', '.join(bounds)})" if bounds else ""
    return f"accepted{by}: {clean_line(accepted.because, 300)}{within}"


def _amount(value: float, unit: str) -> str:
    """Return a value in its unit, or a share if there is no unit."""
    return format_value(value, unit) if unit else format_share(value)


def _p_text(p: float | None) -> str:
    if p is None:
        return ""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"
