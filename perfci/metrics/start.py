"""Time of a start, from a fresh process to the end of its first call, with imports and compiling.

torch's counts of what was compiled are private. If a count is absent, its metric is missing, not 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from perfci.finding import finding
from perfci.metrics import NOTHING, Collector, MovedCase, Reading, Ruling, Warm
from perfci.metrics.graphs import counters, kernels_generated, typical
from perfci.model.case import Metric
from perfci.stats.quantile import median
from perfci.units import format_value

if TYPE_CHECKING:
    from perfci.finding import Explanation
    from perfci.model.measuring import WorkerOutput

PLACE = 2
METRICS = {
    Metric("cold_start", "s", "per_worker", 0.10, "fail"): (
        "from starting a fresh process to the end of its first call, compile cache warm"
    ),
    Metric(
        "import_time", "s", "per_worker", 0.10, "warn"
    ): "time of the imports of the benchmark file",
    Metric(
        "early_calls",
        "s",
        "per_worker",
        0.02,
        "fail",
        absolute=True,
        whole="cold_start",
        share_of_whole=0.05,
        zero_if_absent=True,
    ): (
        "extra time of the second to the 40th call over warm calls, summed over calls that take "
        "twice as long; less than 5 ms counts as 0"
    ),
    Metric("compile_time", "s", "per_worker", 0.10, "fail", rounds_setting="compile_rounds"): (
        "first call − median of warm calls, with an empty compile cache"
    ),
    Metric("compile_time_cached", "s", "per_worker", 0.10, "warn"): (
        "first call − median of warm calls, with a warm compile cache"
    ),
    Metric("captured_calls", "count", "exact", 0.0, "info", absolute=True): (
        "calls in the graphs that torch.compile made until the work was warm"
    ),
    Metric(
        "generated_kernels",
        "count",
        "exact",
        0.0,
        "info",
        absolute=True,
        rounds_setting="compile_rounds",
    ): "kernels that Inductor generated for these graphs, with an empty compile cache",
}
_COMPILES = ("compile_time", "compile_time_cached")
_EARLY, _NEGLIGIBLE_S = "early_calls", 0.005
_CAPTURED, _KERNELS = "captured_calls", "generated_kernels"
_LEAST_GROWTH_S = 0.001
"""Least growth of a phase that is reported as an explanation."""


class Start(Collector):
    """Takes the worker's clock readings, and counts what set-up and warm-up compiled."""

    def before_setup(self) -> None:
        """Note how much the imports have compiled, which isn't part of the work."""
        self._before = _compiled()

    def warm(self) -> None:
        """Count what was compiled until the work is warm: the part that a user waits for."""
        self._compiled = {
            name: count - self._before.get(name, 0) for name, count in _compiled().items()
        }

    def after_bursts(self) -> Reading:
        """Return both times, and the counts of what was compiled."""
        return self._times().joined(self._amounts())

    def _times(self) -> Reading:
        imports = {"import_time": self.scene.imports}
        if self.scene.compiled() and self.scene.order.cold_cache:
            return Reading(imports, {"cold_start": "the compile cache was empty"})
        return Reading({**imports, "cold_start": self.scene.start})

    def _amounts(self) -> Reading:
        """Return the counts. Kernels are left out with a warm cache, as Inductor generates none."""
        if not self.scene.compiled():
            return Reading(missing=dict.fromkeys((_CAPTURED, _KERNELS), "not compiled"))
        warm = set() if self.scene.order.cold_cache else {_KERNELS}
        known = {name: float(n) for name, n in self._compiled.items() if n >= 0}
        return Reading({name: count for name, count in known.items() if name not in warm})


COLLECTOR = Start


def _compiled() -> dict[str, int]:
    """Return the counts of what this process has compiled, as far as its torch counts them."""
    counts = {}
    if (dynamo := counters()) is not None:
        counts[_CAPTURED] = dynamo.get("stats", Counter())["calls_captured"]
    if (kernels := kernels_generated()) is not None:
        counts[_KERNELS] = kernels
    return counts


def reduce(warm: Warm) -> Reading:
    """Return the compile time, and the time of work that later calls than the first did once."""
    return _compile_time(warm).joined(_early_calls(warm))


def _early_calls(warm: Warm) -> Reading:
    if warm.cold_cache and (warm.measurement.compiled or "graphs" in warm.measurement.values):
        return Reading(missing={_EARLY: "the compile cache was empty"})
    usual = median(warm.samples) if warm.samples else math.inf
    more = sum(call - usual for call in warm.measurement.first_calls[1:] if call > 2.0 * usual)
    return Reading({_EARLY: more} if more >= _NEGLIGIBLE_S else {})


def _compile_time(warm: Warm) -> Reading:
    """Return the compile time: of the cold or the cached metric, by the worker's compile cache."""
    if not warm.measurement.compiled:
        later = "graphs" in warm.measurement.values
        why = "compiled in set-up or in a later call, not in the first" if later else "not compiled"
        return Reading(missing=dict.fromkeys(_COMPILES, why))
    if not warm.samples:
        return NOTHING
    cold, cached = _COMPILES
    took = max(0.0, warm.measurement.first_call_s - median(warm.samples))
    return Reading({cold if warm.cold_cache else cached: took})


# The same graphs, settings and generated code take about the same time to compile: a small
# difference of one pair of compilations is the machine's. A large one may be that of code that runs
# while compiling and leaves no trace in what is generated: a traced loop, a pass, a backend.

_MOST_OF_SAME_CODE = 1.25
"""Largest head ÷ base that the machine is taken to explain."""
_SPREAD = 0.15
"""Standard deviation of the log ratio of a pair of compilations of one commit. It was 5 to 18 %
(docs/results/stopping.md). Too few pairs are measured to estimate it."""
_SURE, _SURE_WITHOUT_EVIDENCE = 2.33, 3.72
"""Normal quantiles of 99 % and 99.99 %, where head compiled more, and where it didn't."""
_MOST_PAIRS = 3
_WORTH_ANOTHER = math.log(1.1)


def cold_pairs(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> int:
    """Return how many pairs of compilations decide on the compile time, as far as is known.

    There is another, up to three, while head looks slower by 10 % and no ruling says so.
    """
    sides = [[o for o in side if "compile_time" in o.values] for side in (base, head)]
    for pairs in range(1, _MOST_PAIRS):
        first = [side[:pairs] for side in sides]
        ratios = _log_ratios(*first)
        if len(ratios) < pairs or fmean(ratios) < _WORTH_ANOTHER or ruling(*first):
            return pairs
    return _MOST_PAIRS


def ruling(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> Mapping[str, Ruling]:
    """Return the ruling on the compile time, if there is one.

    It is unchanged if both sides generated the same code, in about the same time. It regressed if
    the pairs' mean is beyond what pairs of one commit differ by: a test of known variance, at 1 %
    if head captured more calls or generated more kernels, else at 0.01 %.
    """
    base, head = ([o for o in side if "compile_time" in o.values] for side in (base, head))
    before, after = ({o.generated_code for o in side} for side in (base, head))
    ratios = _log_ratios(base, head)
    if not ratios:
        return {}
    change = fmean(ratios)
    same_code = before == after and len(before) == 1 and "" not in before
    if same_code and change <= math.log(_MOST_OF_SAME_CODE):
        return {"compile_time": Ruling("unchanged", finding("same-code"))}
    counts = [(typical(base, name), typical(head, name)) for name in (_CAPTURED, _KERNELS)]
    more = any(old is not None and new is not None and new > old for old, new in counts)
    if change * math.sqrt(len(ratios)) <= _SPREAD * (_SURE if more else _SURE_WITHOUT_EVIDENCE):
        return {}
    why = finding("compiles-slower", pairs=len(ratios))
    return {"compile_time": Ruling("regressed", why, math.exp(change))}


def _log_ratios(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> list[float]:
    pairs = zip(base, head, strict=False)
    took = [[output.values["compile_time"] for output in pair] for pair in pairs]
    return [math.log(after / before) for before, after in took if before > 0.0 < after]


def explain(moved: MovedCase) -> Iterator[Explanation]:
    """Yield how much more head compiled, and the phase of the cold start that grew most."""
    worse = [name for name in _COMPILES if name in moved.regressed]
    for name, what in ((_CAPTURED, "calls in graphs"), (_KERNELS, "generated kernels")):
        before, after = typical(moved.base, name), typical(moved.head, name)
        if worse and before is not None and after is not None and after > before:
            yield moved.because(worse[0], "compiled", f"{what}: {before:.0f} → {after:.0f}")
    yield from _phase_that_grew(moved)


def _phase_that_grew(moved: MovedCase) -> Iterator[Explanation]:
    if "cold_start" not in moved.regressed:
        return
    before, after = _phases(moved.base), _phases(moved.head)
    grown = [(after[name] - before[name], name) for name in after if name in before]
    growth, name = max(grown, default=(0.0, ""))
    if growth > _LEAST_GROWTH_S:
        shown = [format_value(phases[name], "s") for phases in (before, after)]
        yield moved.because("cold_start", "phase", f"{name}: {shown[0]} → {shown[1]}")


def _phases(outputs: Sequence[WorkerOutput]) -> dict[str, float]:
    names = dict.fromkeys(name for output in outputs for name in output.phases)
    return {name: median([o.phases[name] for o in outputs if name in o.phases]) for name in names}
