"""Running many cases of one file, nothing measured: what of the trees do they use?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perfci.api.work import Work
from perfci.errors import Unusable
from perfci.model.worker import WorkOrder
from perfci.worker.building import imported, set_up
from perfci.worker.copies import Copies
from perfci.worker.devices import Kind, kinds, named, used
from perfci.worker.measurement import fix_threads_and_seed

if TYPE_CHECKING:
    from perfci.worker.main import Stage
    from perfci.worker.protocol import Channel

_CALLS = 3


def run_cases(
    order: WorkOrder, channel: Channel, stage: Stage, look: Callable[[], None] = lambda: None
) -> None:
    """Set up and call each of the order's ``cases``, with its reference; ``look`` comes last.

    Unusable for a case with numbers of its own, which one round of each side says, and for one that
    runs commands or servers, which is never the same code.
    """
    sys.addaudithook(_refuse_programs)
    run = _Running(order, stage, kinds(order.devices), Copies())
    stage.enter("import")
    benchmarks = imported(order)
    for case in order.cases:
        stage.enter("setup")
        one = replace(order, case=case)
        fix_threads_and_seed(one)
        set_up(one, benchmarks)(run.work)
        run.copies.require_none()
    stage.enter("finish")
    run.copies.require_none_at_last()
    look()
    channel.send("ran")


def _refuse_programs(event: str, _: tuple[Any, ...]) -> None:
    if event == "perfci.command":
        raise Unusable("runs_programs", "the benchmark runs a command or a server")


@dataclass(frozen=True, slots=True)
class _Running:
    order: WorkOrder
    stage: Stage
    kinds: Sequence[Kind]
    copies: Copies

    def work(self, work: Work) -> None:
        """Call the work of one case, and its reference."""
        fix_threads_and_seed(self.order, seed=False)
        if work.metrics:
            raise Unusable("own_metrics", "the benchmark has metrics of its own")
        self.stage.enter("first_call")
        for _ in range(_CALLS):
            output = work.call()
        device = named(self.kinds, work.device) if work.device else used(self.kinds, output)
        if device:
            device.synchronize()
        if work.accuracy:
            work.accuracy()
