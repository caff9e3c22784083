"""Pure: what the two workers of a round say of each other, by bursts that lay side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from perfci.model.worker import WorkerOutput
from perfci.stats.quantile import median

Medians = Sequence[float | None]


def pair_values(base: WorkerOutput, head: WorkerOutput, metric: str) -> tuple[float, float]:
    """Return one round's values of ``metric``, base's and head's.

    Where both sides have bursts of it, their ratio is the median over the ratios of bursts that
    lay side by side, and their geometric mean is that of the sides' own values: swapping the sides
    swaps the values.
    """
    before, after = float(base.values[metric]), float(head.values[metric])
    log_ratio = _log_ratio(base, head, metric)
    if log_ratio is None or min(before, after) <= 0.0:
        return before, after
    center = math.sqrt(before * after)
    return center * math.exp(-log_ratio / 2.0), center * math.exp(log_ratio / 2.0)


def _log_ratio(base: WorkerOutput, head: WorkerOutput, metric: str) -> float | None:
    if metric in base.beside and metric in head.beside:
        return (head.beside[metric] - base.beside[metric]) / 2.0
    before, after = base.bursts.get(metric, ()), head.bursts.get(metric, ())
    if len(before) != len(after):
        return None
    ratios = [math.log(h / b) for b, h in zip(before, after, strict=True) if b and h]
    return median(ratios) if ratios else None


def side_by_side(
    outputs: Sequence[WorkerOutput], blocks: Sequence[int]
) -> tuple[WorkerOutput, ...]:
    """Return the outputs of one round, the one that began first, with their log ratios.

    ``blocks`` has the bursts of each block a side; who begins alternates. The medians of single
    bursts are dropped: there are hundreds, and they have said what they can.
    """
    logs: dict[str, float] = {}
    if len(outputs) == 2:
        first, second = outputs
        for metric in first.bursts.keys() & second.bursts.keys():
            ratios = list(_neighbours(first.bursts[metric], second.bursts[metric], blocks))
            if ratios:
                logs[metric] = median(ratios)
    signs = (-1.0, 1.0)
    return tuple(
        replace(one, bursts={}, beside={name: sign * log for name, log in logs.items()})
        for one, sign in zip(outputs, signs, strict=False)
    )


def _neighbours(first: Medians, second: Medians, blocks: Sequence[int]) -> Iterator[float]:
    """Yield log(second / first) of each two bursts that followed each other within a block.

    Every burst but the outermost has a neighbour before it and one after it: a drift cancels.
    """
    if not len(first) == len(second) == sum(blocks):
        return
    begin = 0
    for number, bursts in enumerate(blocks):
        sides = first[begin : begin + bursts], second[begin : begin + bursts]
        begin += bursts
        sign = -1.0 if number % 2 else 1.0
        in_turn = list(chain.from_iterable(zip(*sides[:: int(sign)], strict=True)))
        for before, after in pairwise(in_turn):
            if before and after:
                yield sign * math.log(after / before)
            sign = -sign
