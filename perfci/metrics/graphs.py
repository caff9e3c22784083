"""Graphs, graph breaks and recompiles of torch.compile."""

from __future__ import annotations

from perfci.model.metric import Metric

PLACE = 5
METRICS = {
    Metric(
        "graph_breaks", "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"
    ): ("where torch.compile had to leave its graph, with file and line"),
    Metric("recompiles", "count", "exact", 0.0, "fail", absolute=True, undecided="inconclusive"): (
        "how often it compiled again, with the reason"
    ),
    Metric("graphs", "count", "exact", 0.0, "info", absolute=True): ("how many graphs it made"),
}
