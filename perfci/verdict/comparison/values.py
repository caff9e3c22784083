"""One side's values of one metric: its estimate, and what of them a reader can draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfci.model.report import MOST_VALUES, Comparison, Estimate
from perfci.model.settings import DECIDING_ROUNDS
from perfci.model.worker import WorkerOutput
from perfci.stats.quantile import median, upper_median
from perfci.stats.summary import summarise


@dataclass(frozen=True, slots=True)
class Values:
    """One side's values of one metric, with the workers they were taken from."""

    outputs: tuple[WorkerOutput, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, outputs: Iterable[WorkerOutput], metric: str) -> Values:
        """Return the values of those workers that have any."""
        having = tuple(output for output in outputs if metric in output.values)
        return cls(having, tuple(float(output.values[metric]) for output in having))

    def at_least(self, floor: float | None) -> Values:
        """Return the values with those below ``floor`` raised to it."""
        if floor is None:
            return self
        return Values(self.outputs, tuple(max(value, floor) for value in self.values))

    @property
    def samples(self) -> int:
        """How many samples the workers took."""
        return sum(output.samples for output in self.outputs)

    def estimate(self, *, logarithmic: bool) -> Estimate:
        """Return the mean, with its interval where the workers are enough."""
        summary, count = summarise(self.values, logarithmic=logarithmic), len(self.values)
        lo, hi = (summary.lo, summary.hi) if count >= DECIDING_ROUNDS else (None, None)
        return Estimate(summary.center, lo, hi, count, self.samples, _shown(self.values))

    def exact_estimate(self) -> Estimate:
        """Return the upper median; the ends are what the workers gave, not an interval."""
        center, lo, hi = upper_median(self.values), min(self.values), max(self.values)
        return Estimate(center, lo, hi, len(self.values), self.samples)


# What a reader can draw: workers' values, quantiles of calls. No figure rests on it.


def with_pairs(row: Comparison, base: Values, head: Values) -> Comparison:
    """Return ``row`` with all pairs' values; where one is no number, with none."""
    before, after = _shown(base.values), _shown(head.values)
    if not (before and after and row.base and row.head):
        before = after = ()
    return replace(
        row,
        base=replace(row.base, values=before) if row.base else None,
        head=replace(row.head, values=after) if row.head else None,
    )


def with_calls(row: Comparison, before: Values | None, after: Values) -> Comparison:
    """Return ``row`` with the median worker's calls on each side that has a number."""
    base, head = (
        replace(
            estimate, quantiles=_quantiles(side.outputs), first_calls=_first_calls(side.outputs)
        )
        if estimate and side
        else estimate
        for estimate, side in ((row.base, before), (row.head, after))
    )
    return replace(row, base=base, head=head)


def _quantiles(outputs: Sequence[WorkerOutput]) -> tuple[float, ...]:
    known = [output.quantiles for output in outputs if output.quantiles]
    if len({len(one) for one in known}) != 1:
        return ()
    return _shown([median(at) for at in zip(*known, strict=True)])


def _first_calls(outputs: Sequence[WorkerOutput]) -> tuple[float, ...]:
    """Return the median over the workers of each of the calls that all of them made first."""
    known = [output.first_calls for output in outputs if output.first_calls]
    return _shown([median(at) for at in zip(*known, strict=False)])


def _shown(values: Sequence[float]) -> tuple[float, ...]:
    """Return the first of the values, to six digits; none where one is no finite number."""
    if not all(map(math.isfinite, values)):
        return ()
    return tuple(float(f"{value:.6g}") for value in values[:MOST_VALUES])
