"""Evidence: all that one metric's values on both sides say, on the scale that fits them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from perfci.model.finding import Finding, found
from perfci.stats.effect import cohens_d
from perfci.stats.nested import how_many, nested_t
from perfci.stats.power import detectable_difference
from perfci.stats.student import CONFIDENCE, Resolution, TTest, mean, no_evidence
from perfci.stats.summary import bounded_exp
from perfci.stats.welch import welch_t, welch_t_of_sessions

_ROUNDING = 1e-12
"""Spread below this share of the values is rounding: the best clocks resolve 1e-9."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What both sides' values say of head against base; intervals are of ``confidence``.

    ``ratio`` is head ÷ base, or ``difference`` is head - base where asked for. ``se`` and
    ``df`` are on the scale of the test: logarithms for ratios. ``detectable`` is a share of
    base, at ``alpha`` for this test alone; None for ratios on logarithms, whose ``se`` gives it
    at the alpha of their family. Without evidence p is None, and a warning says why.
    ``ancestors`` is how many ancestors the pairs come from, 0 without pairs.
    ``logarithmic``: the estimate is the ratio of geometric means, else of arithmetic ones.
    """

    method: Literal["paired_t", "welch_t"]
    ratio: float | None = None
    ratio_lo: float | None = None
    ratio_hi: float | None = None
    difference: float | None = None
    difference_lo: float | None = None
    difference_hi: float | None = None
    p: float | None = None
    welch_p: float | None = None
    cohens_d: float | None = None
    detectable: float | None = None
    se: float | None = None
    df: float | None = None
    warnings: tuple[Finding, ...] = ()
    logarithmic: bool = True
    ancestors: int = 0
    confidence: float = CONFIDENCE


def paired_evidence(
    base: Sequence[float],
    head: Sequence[float],
    *,
    alpha: float,
    absolute: bool = False,
    step: float = 0.0,
    fewest: int = 2,
    ancestors: Sequence[int] = (),
    fewest_ancestors: int = 2,
    confidence: float = CONFIDENCE,
) -> Evidence:
    """Return the evidence of pairs: paired t, with Welch's p next to it.

    ``ancestors`` are the pairs', as ``nested_t`` has them; none: each pair has its own.

    Notes
    -----
    On logarithms, so that the estimate is a ratio and swapping the sides inverts it. Values of
    zero or below have no logarithm: their change is then of arithmetic means, as a share of
    base's, which is taken as exact (and said so). ``absolute`` asks for the difference itself.
    ``step`` is that of the instrument, in the values' unit. Fewer pairs than ``fewest``, or of
    fewer ancestors, give the estimate alone.
    """
    if problem := no_evidence((*base, *head)):
        return Evidence("paired_t", warnings=(problem,))
    scale = _Scale.of(base, head, absolute=absolute, step=step)
    before, after = scale.to(base), scale.to(head)
    groups = list(ancestors or [0] * len(before))
    evidence = scale.evidence(
        "paired_t",
        nested_t(before, after, groups, resolution=scale.resolution, confidence=confidence),
        alpha,
        welch_p=welch_t(before, after, resolution=scale.resolution).p,
        effect=cohens_d(before, after, resolution=scale.resolution),
    )
    count = how_many(groups)
    evidence = _of_enough(evidence, len(before), fewest)
    evidence = _of_enough(evidence, count, min(fewest, fewest_ancestors))
    return replace(evidence, ancestors=count, confidence=confidence)


def unpaired_evidence(
    base_sessions: Sequence[Sequence[float]],
    head: Sequence[float],
    *,
    alpha: float,
    absolute: bool = False,
    step: float = 0.0,
    fewest: int = 2,
) -> Evidence:
    """Return the evidence of head against a stored baseline of one or several sessions.

    ``step`` is that of the instrument, in the values' unit.
    Fewer values than ``fewest`` on a side give the estimate alone.
    """
    base = [value for session in base_sessions for value in session]
    if problem := no_evidence((*base, *head)):
        return Evidence("welch_t", warnings=(problem,))
    scale = _Scale.of(base, head, absolute=absolute, step=step)
    sessions = [scale.to(session) for session in base_sessions]
    after = scale.to(head)
    test = welch_t_of_sessions(sessions, after, resolution=scale.resolution)
    effect = cohens_d(scale.to(base), after, resolution=scale.resolution)
    evidence = scale.evidence("welch_t", test, alpha, welch_p=test.p, effect=effect)
    return _of_enough(evidence, min(len(base), len(head)), fewest)


def _of_enough(evidence: Evidence, count: int, fewest: int) -> Evidence:
    if count >= fewest:
        return evidence
    return Evidence(
        evidence.method,
        ratio=evidence.ratio,
        difference=evidence.difference,
        warnings=evidence.warnings,
        logarithmic=evidence.logarithmic,
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """How values enter the test, and how its estimate comes back."""

    kind: Literal["log", "share", "difference"]
    resolution: Resolution
    base_mean: float | None

    @classmethod
    def of(
        cls, base: Sequence[float], head: Sequence[float], *, absolute: bool, step: float
    ) -> _Scale:
        values = (*base, *head)
        largest = max(map(abs, values), default=0.0)
        base_mean = mean(base) if base else None
        plain = Resolution(_ROUNDING * largest, step)
        if absolute:
            return cls("difference", plain, base_mean)
        if (least := min(values, default=0.0)) > 0.0:
            return cls("log", Resolution(_ROUNDING, step / least), base_mean)
        return cls("share", plain, base_mean)

    def to(self, values: Sequence[float]) -> list[float]:
        return [math.log(value) for value in values] if self.kind == "log" else list(values)

    def evidence(
        self,
        method: Literal["paired_t", "welch_t"],
        test: TTest,
        alpha: float,
        *,
        welch_p: float | None,
        effect: float | None,
    ) -> Evidence:
        warnings = test.warnings
        if self.kind == "share" and self.base_mean is not None:
            warnings += (
                found("arithmetic-means") if self.base_mean > 0.0 else found("no-ratio-of-mean"),
            )
        estimates = (test.estimate, test.lo, test.hi)
        ratio, ratio_lo, ratio_hi = map(_optional(self._ratio), estimates)
        absolute = self.kind == "difference"
        difference, difference_lo, difference_hi = estimates if absolute else (None, None, None)
        return Evidence(
            method=method,
            ratio=ratio,
            ratio_lo=ratio_lo,
            ratio_hi=ratio_hi,
            difference=difference,
            difference_lo=difference_lo,
            difference_hi=difference_hi,
            p=test.p,
            welch_p=welch_p,
            cohens_d=effect,
            detectable=self._detectable(test, alpha),
            se=test.se,
            df=test.df,
            warnings=warnings,
            logarithmic=self.kind == "log",
        )

    def _ratio(self, estimate: float) -> float | None:
        if self.kind == "log":
            return bounded_exp(estimate)
        if self.kind == "share" and self.base_mean is not None and self.base_mean > 0.0:
            return 1.0 + estimate / self.base_mean
        return None

    def _detectable(self, test: TTest, alpha: float) -> float | None:
        if self.kind == "log" or test.se is None or test.df is None:
            return None
        if self.base_mean is None or self.base_mean <= 0.0:
            return None
        return detectable_difference(test.se, test.df, alpha) / self.base_mean


def _optional(
    function: Callable[[float], float | None],
) -> Callable[[float | None], float | None]:
    return lambda value: None if value is None else function(value)
