"""The report: comparisons, verdict and all that a renderer needs. Schema ``perfci.report/1``.

Field names are fixed: scripts read them. ``docs/reference/fields.toml`` says what they mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from perfci.finding import FOLLOWS, LOOKS_SLOWER, Evidence, Explanation, Finding, Reason, Why
from perfci.model.case import Failure, Gate
from perfci.model.run import Environment, Side
from perfci.model.status import Status
from perfci.model.words import reason_words, words
from perfci.version import REPORT_SCHEMA

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 200
"""Most values of a side in a report, which keeps the first ones."""
_TEXTS = ("case", "metric", "unit", "status", "gate", "method", "direction")
_NUMBERS = (
    "ratio", "ratio_lo", "ratio_hi", "difference", "difference_lo", "difference_hi", "threshold",
    "p", "p_adjusted", "welch_p", "cohens_d", "detectable",
)  # fmt: skip
_ESTIMATE = ("center", "lo", "hi", "workers", "samples")
_SIDES = tuple(f"{side}_{name}" for side in ("base", "head") for name in _ESTIMATE)
COLUMNS = (*_TEXTS, *_NUMBERS, "confirmed", *_SIDES, "warnings")
"""Columns of ``Report.to_frame`` and of the CSV, in order."""


VerdictStatus = Literal["pass", "fail", "inconclusive", "error"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One side of a comparison, in the metric's unit."""

    center: float | None
    lo: float | None
    hi: float | None
    workers: int
    samples: int
    values: tuple[float, ...] = ()
    quantiles: tuple[float, ...] = ()
    first_calls: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted regression, which doesn't fail the report up to its limit."""

    because: str
    by: str = ""
    up_to: float | None = None
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Evidence):
    """The numbers of one case and metric, and their status under the policy."""

    case: str
    metric: str
    unit: str
    status: Status
    gate: Gate
    threshold: float
    base: Estimate | None
    head: Estimate | None
    p_adjusted: float | None
    direction: str = "lower"
    confirmed: bool | None = None
    caveat: Finding | None = None
    base_sessions: int = 0
    anchors: int = 0
    outliers: tuple[int, ...] = ()
    disturbance: str = ""
    accepted: Accepted | None = None

    @property
    def pairs(self) -> int:
        """The number of rounds that were compared, or of base's workers."""
        return self.base.workers if self.base else 0

    def noting(self, *findings: Finding, **changes: Any) -> Self:
        """Return the row with more ``findings`` at the end, and with other ``changes``."""
        return replace(self, findings=(*self.findings, *findings), **changes)

    @property
    def follows(self) -> bool:
        """Whether it changed as its case's median did, which is one change and not two."""
        return any(known.code == FOLLOWS for known in self.findings)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings in words, each once."""
        return tuple(dict.fromkeys(map(words, self.findings)))

    @property
    def doubt(self) -> str:
        """The caveat in words, or nothing."""
        return words(self.caveat) if self.caveat else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the whole report, with its reasons."""

    status: VerdictStatus
    findings: tuple[Reason, ...]

    @property
    def looks_slower(self) -> bool:
        """Whether an undecided row looks worse than noise does."""
        return self.status == "inconclusive" and any(
            reason.code == LOOKS_SLOWER for reason in self.findings
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(map(reason_words, self.findings))


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of the session."""

    wall_s: float
    measured_s: float
    rounds: int


@dataclass(frozen=True, slots=True)
class Definition:
    """The place where a benchmark is written."""

    benchmark: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The results of one compare, check or run."""

    perfci_version: str
    created_at: str
    command: str
    base: Side | None
    head: Side
    environment: Environment
    verdict: Verdict
    timing: Timing
    results: tuple[Comparison, ...]
    failures: tuple[Failure, ...]
    explanations: tuple[Explanation, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    not_measured: Mapping[str, str] = field(default_factory=dict)
    base_environment: Environment | None = None
    injected: Mapping[str, float] = field(default_factory=dict)
    interrupted: bool = False
    shard: str = ""
    split: str = ""
    missing: tuple[str, ...] = ()
    durations: Mapping[str, float] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()
    installed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    why: tuple[Why, ...] = ()
    benchmarks_of: str = ""
    schema: str = REPORT_SCHEMA

    @property
    def is_one_sided(self) -> bool:
        """Return whether head was measured alone, without a base."""
        return self.base is None and self.command == "run"

    @property
    def regressions(self) -> tuple[Comparison, ...]:
        """Return the regressions that fail the report, as many as the verdict counts."""
        return tuple(
            row
            for row in self.results
            if (row.status, row.gate) == ("regressed", "fail") and not (row.follows or row.accepted)
        )

    def __repr__(self) -> str:
        sides = " → ".join(side.sha[:10] or side.rev for side in (self.base, self.head) if side)
        rows = ", ".join(
            f"{count} {status}" for status, count in Counter(r.status for r in self.results).items()
        )
        return f"<perfci {self.command} {sides}: {self.verdict.status}; {rows or 'no rows'}>"

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame with a row for each comparison; docs/api.md has the columns.

        Numbers are float64, NaN for a missing one.
        """
        import pandas as pd

        frame = pd.DataFrame([cells(row) for row in self.results], columns=list(COLUMNS))
        kinds = {**dict.fromkeys((*_NUMBERS, *_SIDES), "float64"), "confirmed": "boolean"}
        return frame.astype(kinds)


Cell = str | int | float | bool | None


def cells(row: Comparison) -> dict[str, Cell]:
    """Return a comparison's cells by column; ``base_…`` and ``head_…`` hold the estimates."""
    return {
        **{name: getattr(row, name) for name in (*_TEXTS, *_NUMBERS, "confirmed")},
        **_estimate("base", row.base),
        **_estimate("head", row.head),
        "warnings": "; ".join(row.warnings),
    }


def _estimate(side: str, estimate: Estimate | None) -> dict[str, Cell]:
    return {f"{side}_{name}": getattr(estimate, name, None) for name in _ESTIMATE}
