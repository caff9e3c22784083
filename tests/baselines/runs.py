"""Runs to store."""

from __future__ import annotations

from typing import Any

from perfci.baselines import make_environment
from perfci.model.case import Case, Failure, Metric
from perfci.model.measuring import WorkerOutput
from perfci.model.run import CaseRun, Environment, Run, Side
from perfci.model.worker import GraphEvent, OutputPart

FACTS = {
    "system": "linux",
    "machine": "x86_64",
    "cpu": "AMD EPYC 9654",
    "torch": "2.13.0+cpu",
    "python": "3.11.9",
}
HERE = make_environment(FACTS)
QUANTILES = (1.0, 1.01, 1.05, 1.1, 1.2, 1.3, 1.5, 1.9, 2.5)
BREAK = GraphEvent("graph_break", "call to print()", "lib.py", 41)
WHOLE = OutputPart({"float32": (1, 1.2e-7)}, 1e-7, (1.0, 2.0), (1.0, 2.0))
OWN = Metric("tokens", "tokens/s", "per_worker", 0.1, "warn", "higher")


def case(name: str, source_hash: str = "s1") -> Case:
    return Case(name, name.partition("[")[0], {}, "bench_a.py", 3, source_hash)


def worker(name: str, number: int, latency: float = 1.2) -> WorkerOutput:
    return WorkerOutput(
        case=name,
        side="head",
        round=number,
        values={"latency_p50": latency, "graph_breaks": 1.0, "tokens": 10.0},
        samples=300,
        quantiles=QUANTILES,
        graph_events=(BREAK,),
        output={"": WHOLE},
        extra_metrics=(OWN,),
    )


def run(
    *names: str,
    sha: str = "a" * 40,
    source_hash: str = "s1",
    at: str = "2026-03-04T05:06:07+00:00",
    latency: float = 1.2,
    environment: Environment = HERE,
    failed: tuple[str, ...] = (),
    **changed: Any,
) -> Run:
    """Return a run of cases with three workers each; those in ``failed`` failed as well."""
    failure = Failure("", "head", "measure", "crash", "gone")
    return Run(
        side=Side("main", sha, "python"),
        environment=environment,
        created_at=at,
        cases=tuple(
            CaseRun(
                case(name, source_hash),
                tuple(worker(name, number, latency) for number in range(3)),
                (failure,) if name in failed else (),
            )
            for name in names
        ),
        **changed,
    )
