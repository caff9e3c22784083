"""The benchmark's own metrics: ``perfci.metric(...)`` next to the work that it returns."""

from __future__ import annotations

import math

from perfci.errors import Unusable
from perfci.metrics import Collector, Reading
from perfci.model.case import Metric

PLACE = 8
METRICS: dict[Metric, str] = {}


class BenchmarkMetrics(Collector):
    """Asks the benchmark for the values of its own metrics."""

    def last(self) -> Reading:
        """Return the values. Raises Unusable for a value that isn't a number."""
        values, missing = {}, {}
        for extra in self.scene.work.metrics:
            name = extra.metric.name
            try:
                value = extra.measure()
            except Exception as error:  # noqa: BLE001 (the benchmark's code may raise anything)
                missing[name] = f"its function raised {type(error).__name__}: {error}"
                continue
            try:
                number = float(value)
            except (TypeError, ValueError) as error:
                raise Unusable(
                    "not_a_number",
                    f"the metric `{name}` gave {repr(value)[:80]}, which is not a number",
                ) from error
            if math.isfinite(number):
                values[name] = number
            else:
                missing[name] = f"the benchmark gave {number}"
        warnings = tuple(f"{name} is missing: {why}" for name, why in missing.items())
        return Reading(values, missing, warnings=warnings)


COLLECTOR = BenchmarkMetrics
