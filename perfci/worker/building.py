"""Set-up: from an order to the work to be measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from perfci.api.definition import Benchmark, Point
from perfci.api.work import Work
from perfci.errors import Unusable
from perfci.metrics import METRICS
from perfci.metrics.own import ExtraMetric
from perfci.model.worker import WorkOrder
from perfci.worker.loading import benchmarks_in, load


def imported(order: WorkOrder) -> tuple[Benchmark, ...]:
    """Import the order's benchmark file and return its benchmarks; for a saved model, torch."""
    if order.benchmark_file:
        return benchmarks_in(load(order.benchmark_file, order.python_path))
    import torch  # noqa: F401 (a saved model's start is torch's)

    return ()


GoOn = Callable[[Work], None]
"""What is done with the work, once it is set up."""


def set_up(order: WorkOrder, benchmarks: Sequence[Benchmark]) -> Callable[[GoOn], None]:
    """Return the set-up at the order's point of its benchmark's axes; it goes on with the work.

    A benchmark that hands its work over does so within its own frames, with all that it holds open.
    """
    if not order.benchmark_file:
        for saved in order.saved:
            for mode in saved.modes:
                if order.case == f"{saved.name}[mode={mode}]":
                    from perfci.api.saved import saved_work

                    return lambda go_on: go_on(_work(saved_work(saved, mode)))
    for benchmark in benchmarks:
        for point in benchmark.points():
            if point.id == order.case:
                return partial(_set_up, benchmark, point)
    raise Unusable("no_such_case", f"`{order.case}` is not in {order.benchmark_file}")


def _set_up(benchmark: Benchmark, point: Point, go_on: GoOn) -> None:
    if benchmark.hands_over:
        benchmark.function(lambda made: go_on(_work(made)), **point.values)
    else:
        go_on(_work(_checked(benchmark, benchmark.function(**point.values))))


def _checked(benchmark: Benchmark, made: Any) -> Any:
    first = made[0] if isinstance(made, tuple) and made else made
    if isinstance(first, Work) or callable(first):
        return made
    what = "nothing" if made is None else repr(made)[:80]
    raise Unusable(
        "nothing_returned" if made is None else "not_callable",
        f"{benchmark.file}:{benchmark.line}: `{benchmark.name}` returned {what}; return the "
        "callable to measure: `return lambda: model(x)`, or perfci.inference(model, x)",
    )


def _work(made: Any) -> Work:
    """Return the work with the metrics that were returned beside it."""
    call, *extras = made if isinstance(made, tuple) else (made,)
    work = call if isinstance(call, Work) else Work(call)
    metrics = (*work.metrics, *extras)
    taken = set(METRICS)
    for extra in metrics:
        if not isinstance(extra, ExtraMetric):
            raise Unusable(
                "not_a_metric", f"{repr(extra)[:80]} beside the work is no perfci.metric(...)"
            )
        name = extra.metric.name
        if name in taken:
            raise Unusable("metric_name", f"a metric can't be called {name!r}: that name is taken")
        taken.add(name)
    return replace(work, metrics=metrics)
