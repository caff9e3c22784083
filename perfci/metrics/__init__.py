"""The metrics. Each group of metrics is one module: to add a group, add a module.

A module (of this package, or named by an entry point of the group ``perfci.metrics``) has
``METRICS``, which maps each ``Metric``, with its default policy, to its description. The module may
have the other attributes that ``MetricGroup`` names. ``PLACE`` orders perfci's own groups in
reports. Groups of other distributions come after them.

Workers import all modules. So a module imports only the standard library, and torch inside of
functions.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from perfci.collector import (
    NOTHING,
    Collector,
    Device,
    ExtraMetric,
    MovedCase,
    Observation,
    Observer,
    Ranks,
    Ruling,
    Scene,
    Warm,
    Work,
)
from perfci.errors import UsageError
from perfci.model.case import Metric
from perfci.model.worker import Reading
from perfci.plugins import (
    BROKEN,
    broken_entry_point,
    built_in_modules,
    entry_points_of,
    load_plugin,
)

if TYPE_CHECKING:
    from perfci.finding import Explanation
    from perfci.model.measuring import WorkerOutput

GROUP = "perfci.metrics"
T = TypeVar("T")

Reduce = Callable[[Warm], Reading]
Explain = Callable[[MovedCase], Iterable["Explanation"]]
Rule = Callable[[Sequence["WorkerOutput"], Sequence["WorkerOutput"]], Mapping[str, Ruling]]


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """The metrics of one module. ``about`` has each metric's description, by its name.

    A module may also have ``COLLECTOR``, the class of its collectors; ``reduce``, which computes
    values from a worker's samples; and ``explain``, which explains why a metric regressed. perfci's
    own modules may have ``ruling``, which may decide on metrics from both sides' workers, whatever
    their numbers are. ``distribution`` is the distribution that has the module, and empty for
    perfci's own.
    """

    name: str
    metrics: tuple[Metric, ...]
    about: Mapping[str, str]
    collector: type[Collector] = Collector
    reduce: Reduce = lambda _: NOTHING
    explain: Explain = lambda _: ()
    ruling: Rule = lambda *_: {}
    distribution: str = ""

    def ask(self, what: str, hook: Callable[[], T]) -> T:
        """Return the result of a hook. If another distribution's hook breaks, raise UsageError."""
        try:
            return hook()
        except Exception as error:
            if not self.distribution:
                raise
            raise UsageError(
                BROKEN,
                f"{self.distribution} can't be used: its {what} ended in "
                f"{type(error).__name__}: {error}",
                f"Mend it, or uninstall {self.distribution}.",
            ) from error


def metric_groups() -> tuple[MetricGroup, ...]:
    """Return the groups in the order of reports. UsageError for a broken added group."""
    return _METRICS.groups


def registered() -> dict[str, str]:
    """Return the names of modules that other distributions add, with the distributions' names."""
    return {group.name: group.distribution for group in metric_groups() if group.distribution}


def use(others: Mapping[str, str]) -> None:
    """Use perfci's own modules and these of other distributions, as ``registered`` gave them.

    A worker calls this, because looking for entry points would take up to 0.1 s.
    """
    own = list(_own())
    for name, distribution in others.items():
        own.append(_group(importlib.import_module(name), distribution))
    vars(_METRICS).clear()
    _METRICS.groups = tuple(own)


def _own() -> Iterator[MetricGroup]:
    modules = [module for _, module in built_in_modules(sys.modules[__name__])]
    return map(_group, sorted(modules, key=lambda module: getattr(module, "PLACE", math.inf)))


def _with_others() -> Iterator[MetricGroup]:
    taken: set[str] = set()
    for group in _own():
        taken |= group.about.keys()
        yield group
    for point in entry_points_of(GROUP):
        distribution = point.dist.name if point.dist else point.value
        group = _group(load_plugin(point, "METRICS"), distribution)
        if twice := sorted(taken & group.about.keys()):
            raise broken_entry_point(point, f"there is a metric `{twice[0]}` already")
        taken |= group.about.keys()
        yield group


def _group(module: Any, distribution: str = "") -> MetricGroup:
    optional = {"collector": "COLLECTOR", "reduce": "reduce", "explain": "explain"}
    if not distribution:
        optional |= {"ruling": "ruling"}
    return MetricGroup(
        name=module.__name__,
        metrics=tuple(module.METRICS),
        about={metric.name: text for metric, text in module.METRICS.items()},
        distribution=distribution,
        **{key: vars(module)[name] for key, name in optional.items() if name in vars(module)},
    )


def rulings(base: Sequence[WorkerOutput], head: Sequence[WorkerOutput]) -> dict[str, Ruling]:
    """Return the rulings on these sides' workers, by metric."""
    return {
        name: ruling
        for group in metric_groups()
        for name, ruling in group.ruling(base, head).items()
    }


def explain(
    case: str,
    base: Sequence[WorkerOutput],
    head: Sequence[WorkerOutput],
    regressed: Sequence[str],
) -> tuple[Explanation, ...]:
    """Return explanations of why these metrics of a case regressed.

    The last group's come first: a graph break says more than the phase that it made longer.
    """
    if not (regressed and base and head):
        return ()
    moved = MovedCase(case, tuple(regressed), base, head)
    every = (_explanations_of(group, moved) for group in reversed(metric_groups()))
    return tuple(chain.from_iterable(every))


def _explanations_of(group: MetricGroup, moved: MovedCase) -> tuple[Explanation, ...]:
    """Return a group's explanations. If a plugin's group is broken, the explanation says so."""
    try:
        return group.ask("explain", lambda: tuple(group.explain(moved)))
    except UsageError as error:
        about = (metric for metric in moved.regressed if metric in group.about)
        return (moved.because(next(about, moved.regressed[0]), "broken_plugin", error.message),)


class _Metrics(Mapping[str, Metric]):
    """The metrics by name, in the order of reports. Their groups are found on first use."""

    @cached_property
    def groups(self) -> tuple[MetricGroup, ...]:
        return tuple(_with_others())

    @cached_property
    def _by_name(self) -> dict[str, Metric]:
        return {metric.name: metric for group in self.groups for metric in group.metrics}

    def __getitem__(self, name: str) -> Metric:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


__all__ = [
    "METRICS", "NOTHING", "Collector", "Device", "ExtraMetric", "Metric", "MetricGroup",
    "MovedCase", "Observation", "Observer", "Ranks", "Reading", "Ruling", "Scene", "Warm", "Work",
    "explain", "metric_groups", "registered", "rulings", "use",
]  # fmt: skip
_METRICS = _Metrics()
METRICS: Mapping[str, Metric] = _METRICS
