"""Pure: whether head's workers were kept off their core more often than base's.

A burst during which the kernel kept its worker off the core is excluded, as a neighbour of the
machine makes it slow. It may be the code: threads of head's own compete for the core, and what they
make slow would be excluded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perfci.model.finding import DELAYED_MORE, Finding, found
from perfci.model.worker import WorkerOutput
from perfci.stats.paired import sign_flip_p

ALPHA = 0.05
"""Five rounds reach it where head has more in each. A false answer keeps bursts on both sides, and
decides nothing by itself."""


def delayed_more(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> Finding | None:
    """Return the finding that head's bursts were delayed more often, by the rounds, or None."""
    before = {output.round: output for output in base}
    pairs = [(before[output.round], output) for output in head if output.round in before]
    p = sign_flip_p([after.bursts_delayed - prior.bursts_delayed for prior, after in pairs])
    if p > ALPHA:
        return None
    return found(
        DELAYED_MORE,
        head=sum(after.bursts_delayed for _, after in pairs),
        base=sum(prior.bursts_delayed for prior, _ in pairs),
        bursts=sum(after.bursts_measured for _, after in pairs),
        p=p,
    )


def delayed_kept(outputs: Sequence[WorkerOutput]) -> tuple[WorkerOutput, ...]:
    """Return the outputs with the values that include delayed bursts."""
    return tuple(
        replace(output, values={**output.values, **output.with_delayed}) for output in outputs
    )
