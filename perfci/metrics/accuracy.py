"""How far outputs are from their float64 reference."""

from __future__ import annotations

from perfci.model.metric import Metric

PLACE = 6
METRICS = {
    Metric("accuracy_loss", "ratio", "exact", 1.0, "fail", floor=1.0, undecided="inconclusive"): (
        "distance (relative L2) of the output to a float64 eager reference, in units of the "
        "dtype's eps"
    ),
}
