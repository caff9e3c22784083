"""Precision, recall and F1 of found changes against known ones, at a margin in points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.trend.labelled import Labelled, Truth


@dataclass(frozen=True, slots=True)
class Score:
    """Counts over a set of series: what was found rightly, wrongly, and what was not found."""

    hits: int
    false: int
    missed: int

    @property
    def f1(self) -> float:
        """2 hits ÷ (2 hits + false + missed); 1 where there was nothing to find and nothing was."""
        total = 2 * self.hits + self.false + self.missed
        return 2 * self.hits / total if total else 1.0


def score(pairs: Iterable[tuple[Labelled, Sequence[int]]], margin: int) -> Score:
    """Score found places. A place counts for one known change only, and the other way about."""
    hits = false = missed = 0
    for series, places in pairs:
        matched = count_matches(series.truths, places, margin)
        hits += matched
        false += len(places) - matched
        missed += len(series.truths) - matched
    return Score(hits, false, missed)


def count_matches(truths: Sequence[Truth], places: Sequence[int], margin: int) -> int:
    """Match the truth that ends first with the first free place near it: a maximum matching."""
    free = sorted(places)
    matched = 0
    for truth in sorted(truths, key=lambda truth: truth.end):
        for place in free:
            if truth.begin - margin <= place <= truth.end + margin:
                free.remove(place)
                matched += 1
                break
    return matched
