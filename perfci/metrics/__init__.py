"""The metrics: a module for each family of them, which is all it takes to add one.

A module has ``METRICS``: each ``Metric``, with its default policy, and what it is in words. Its
``PLACE`` orders families in reports. Standard library only, and torch where it is asked for:
workers import all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from perfci.model.metric import Metric
from perfci.plugins import built_in


@dataclass(frozen=True, slots=True)
class Family:
    """One module's metrics. ``about`` says what each is, by its name."""

    name: str
    metrics: tuple[Metric, ...]
    about: Mapping[str, str]


@cache
def families() -> tuple[Family, ...]:
    """Return the families in the order of reports."""
    modules = [module for _, module in built_in(sys.modules[__name__])]
    return tuple(map(_family, sorted(modules, key=lambda module: module.PLACE)))


def _family(module: Any) -> Family:
    about = {metric.name: text for metric, text in module.METRICS.items()}
    return Family(module.__name__, tuple(module.METRICS), about)


@cache
def _by_name() -> dict[str, Metric]:
    return {metric.name: metric for family in families() for metric in family.metrics}


class _Metrics(Mapping[str, Metric]):
    """The metrics by name, in the order of reports; found when they are first asked for."""

    def __getitem__(self, name: str) -> Metric:
        return _by_name()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_by_name())

    def __len__(self) -> int:
        return len(_by_name())


METRICS: Mapping[str, Metric] = _Metrics()
