"""The demo's kept measurements, and all the reports that perfci makes of them.

python -m tests.verdict.kept keep      run the demo anew, and keep what its workers gave
python -m tests.verdict.kept golden    judge what is kept, and keep the reports
python -m tests.verdict.kept judge FOLDER [SEEDS [CASES]]   write them, a file a way of judging
"""

from __future__ import annotations

import importlib
import json
import lzma
import math
import sys
import tempfile
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from perfci.baselines import Baseline, with_run
from perfci.commands.check import against_baselines
from perfci.commands.run_to_report import conclude, rows_alone, run_of, with_session
from perfci.measure.progress import CaseState, SessionResult
from perfci.model.case import Case, Failure, Metric
from perfci.model.codec import decode, encode
from perfci.model.measuring import WorkerOutput
from perfci.model.report import Report, Timing, Verdict
from perfci.model.run import CaseRun, Environment, Run, Side
from perfci.report.exporters.json import render as render_json
from perfci.verdict.acceptance import enforced
from perfci.verdict.case_comparisons import compare_case
from perfci.verdict.decision import UNDECIDED, with_verdict
from perfci.verdict.merge import merge
from perfci.verdict.policy import Policy
from perfci.verdict.reduction import side_by_side
from perfci.verdict.shards import ShardCases
from perfci.verdict.stopping import undecided_metrics
from perfci.version import VERSION

KEPT = Path(__file__).parents[1] / "data" / "kept" / "demo.json.xz"
OLD = KEPT.parent / "reports.json.xz"
"""The reports that perfci made of it, by name: commit 5ab4c6e, but host memory to a page."""


@dataclass(frozen=True, slots=True)
class KeptCase:
    """One case as a session measured it."""

    case: Case
    base: tuple[WorkerOutput, ...]
    head: tuple[WorkerOutput, ...]
    failures: tuple[Failure, ...]
    wall_s: float


@dataclass(frozen=True, slots=True)
class Kept:
    """What a session's workers gave."""

    cases: tuple[KeptCase, ...]


def load() -> Kept:
    return decode(lzma.decompress(KEPT.read_bytes()), Kept)


def keep(options: list[str]) -> None:
    """Run ``examples/demo.py``'s comparison in this process, and write what its workers gave."""
    from perfci.cli.main import main
    from perfci.measure.session import Session

    measure = Session.measure

    def kept(self, cases, found, *rest, **more):
        result = measure(self, cases, found, *rest, **more)
        states = [
            KeptCase(
                state.case,
                tuple(state.outputs["base"]),
                tuple(state.outputs["head"]),
                tuple(state.failures),
                state.wall_s,
            )
            for state in result.states
        ]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        encoded = encode(Kept(tuple(states))).encode()
        KEPT.write_bytes(lzma.compress(encoded))
        return result

    Session.measure = kept
    sys.path.insert(0, str(Path("examples").resolve()))
    demo = importlib.import_module("demo")
    with tempfile.TemporaryDirectory() as folder, chdir(demo.build(Path(folder) / "repository")):
        with Path("pyproject.toml").open("a") as file:
            file.write("rounds = 6\nmax_rounds = 6\nround_time = 0.2\n")
        sys.argv = ["perfci", "compare", "main", "feature", *options]
        main()


# Cases that no demo has: counts, differences, outliers, two speeds, values that come and go.


def simulated(seed: int, count: int = 40) -> Kept:
    """Return ``count`` cases whose workers' values are drawn: all that comparisons can meet."""
    rng = Random(seed)
    cases = tuple(_drawn(f"drawn[n={number}]", rng) for number in range(count))
    return Kept(cases)


OWN = (
    Metric("heat", "K", "sampled", 0.05, "fail"),
    Metric("score", "count", "exact", 0.02, "warn", direction="higher"),
)


def _drawn(name: str, rng: Random) -> KeptCase:
    rounds = rng.choice((1, 2, 4, 5, 6, 7, 9, 12))
    change = rng.choice((1.0, 1.0, 1.001, 1.03, 1.06, 1.15, 0.9, 2.0))
    spread = rng.choice((1e-4, 0.005, 0.02, 0.1))
    bimodal, outlier = rng.random() < 0.2, rng.random() < 0.3
    lost = rng.choice(("", "", "", "graphs", "heat"))
    sides: dict[str, list[WorkerOutput]] = {"base": [], "head": []}
    for number in range(1, rounds + 1):
        shared = rng.gauss(0.0, 0.05)
        for side, outputs in sides.items():
            times = change if side == "head" else 1.0
            slow = 0.2 if bimodal and rng.random() < 0.4 else 0.0
            far = 0.7 if outlier and number % 6 == 3 and side == "head" else 0.0
            p50 = 0.01 * times * math.exp(shared + rng.gauss(0.0, spread) + slow + far)
            bursts = tuple(p50 * math.exp(rng.gauss(0.0, spread)) for _ in range(4))
            values = {
                "latency_p50": p50,
                "latency_p95": p50 * 1.2,
                "latency_mean": p50 * 1.05,
                "throughput": 8.0 / p50,
                "cold_start": 1.5 * math.exp(rng.gauss(0.0, 0.03)) * times,
                "peak_host_memory": float(round(1e9 * math.exp(rng.gauss(0.0, 0.01)))),
                "host_memory_over_setup": rng.choice((0.0, 4096.0, 5e6)) * times,
                "peak_device_memory": 2e9 * times,
                "memory_growth": rng.choice((0.0, 0.0, 8.0)),
                "graph_breaks": float(change > 1.1 and side == "head"),
                "graphs": float(lost != "graphs" or side == "base"),
                "accuracy_loss": rng.choice((0.5, 1.0, 3.0)),
                "heat": rng.gauss(1.0, 1.0),
                "score": 10.0 * times,
            }
            if side == "head":
                values.pop(lost, None)
            if rng.random() < 0.05:
                values.pop("cold_start")
            outputs.append(
                WorkerOutput(
                    case=name,
                    side=side,
                    round=number,
                    values=values,
                    samples=100,
                    missing={lost: "gone"} if lost else {},
                    phases={"setup": p50, "imports": 1.0 * times},
                    bursts={"latency_p50": (*bursts[:3], None if far else bursts[3])},
                    bursts_set_aside=int(far > 0.0),
                    disturbance="core taken" if far else "",
                    extra_metrics=OWN,
                )
            )
    drawn = Case(name, "drawn", {}, "bench_drawn.py", 3, "s", compiled=lost == "graphs")
    broken = rng.random() < 0.05
    failures = (Failure(name, "head", "setup", "ValueError", "no"),) if broken else ()
    rounds_of_both = zip(sides["base"], sides["head"], strict=True)
    base, head = zip(*(side_by_side(pair, (1,) * 4) for pair in rounds_of_both), strict=True)
    return KeptCase(drawn, base, head, failures, 2.5)


# All the ways of judging.

ENVIRONMENT = Environment("linux-x86_64-cpu-1a2b3c4d", {"cpu": "AMD EPYC 9654"})
BASE = Side("main", "a" * 40, "/usr/bin/python3.11")
HEAD = Side("feature", "b" * 40, "/usr/bin/python3.11")
STRICT = replace(Policy(), thresholds={"drawn": {"latency_p50": 0.01}, "gate": {}})


def judged(kept: Kept) -> dict[str, Any]:
    """Return the plain reports of every way to judge what is kept, and when sessions would end."""
    policy = Policy()
    compared = _compared(kept)
    halves = [
        _compared(replace(kept, cases=kept.cases[number::2]), shard=f"{number + 1}/2")
        for number in range(2)
    ]
    (whole,) = merge([(half.shard, half) for half in halves], policy)
    (half,) = merge([(halves[0].shard, halves[0])], policy)
    checks = {f"check-{count}": _checked(kept, count) for count in (1, 2, 3)}
    reports = {
        "compare": compared,
        "interrupted": _compared(kept, ended="interrupted"),
        "run": _alone(kept),
        **{name: _decided(report) for name, (_, report) in checks.items()},
        "merged": whole,
        "incomplete": half,
        "enforced": enforced(_passing(compared), STRICT, {"drawn": None}),
        "enforced-check": enforced(_passing(_checked_report(kept)), STRICT),
    }
    plain = {name: json.loads(render_json(report)) for name, report in reports.items()}
    return {**plain, "sessions": _sessions(kept)}


def _passing(report: Report) -> Report:
    """Return a report that passes, of those rows alone that let it."""
    bad = {failure.case for failure in report.failures}
    rows = tuple(
        row
        for row in report.results
        if row.status in {"unchanged", "improved", "new"} and row.case not in bad
    )
    return replace(report, results=rows, failures=(), verdict=Verdict("pass", ()))


def _undecided(kept: Kept, result: SessionResult, command: str, shard: str = "") -> Report:
    report = Report(
        perfci_version=VERSION,
        verdict=UNDECIDED,
        results=(),
        failures=(),
        command=command,
        created_at="2026-03-04T05:06:07+00:00",
        base=None if command == "run" else BASE,
        head=HEAD,
        environment=ENVIRONMENT,
        timing=Timing(30.0, 4.0, 60),
        notes=("A note.",),
        shard=shard,
        split="0123456789ab" if shard else "",
    )
    return with_session(report, [case.case for case in kept.cases], result, ())


def _decided(report: Report) -> Report:
    return with_verdict(report, Policy())


def _result(kept: Kept, sides: tuple[str, ...], ended: str = "done"):
    states = []
    for case in kept.cases:
        outputs = {side: list(getattr(case, side)) for side in sides}
        state = CaseState(case.case, "slug", outputs, list(case.failures))
        state.rounds, state.wall_s = len(case.head), case.wall_s
        states.append(state)
    return SessionResult(tuple(states), 30.0, 4.0, 60, ended, ())


def _both(kept: Kept, shard: str = "", ended: str = "done") -> Report:
    result = _result(kept, ("base", "head"), ended)
    one_sided = () if shard == "2/2" else ("removed",), () if shard == "2/2" else ("added",)
    report = _undecided(kept, result, "compare", shard)
    return conclude(report, result, *one_sided, Policy(), {})


def _compared(kept: Kept, shard: str = "", ended: str = "done") -> Report:
    return _decided(_both(kept, shard, ended))


def _alone(kept: Kept) -> Report:
    result = _result(kept, ("head",))
    rows = rows_alone(result, Policy())
    return _decided(replace(_undecided(kept, result, "run"), results=rows))


def _checked(kept: Kept, sessions: int) -> tuple[Run, Report]:
    result = _result(kept, ("head",))
    report = _undecided(kept, result, "check")
    run = run_of(result, "head", report, ENVIRONMENT)
    part = ShardCases(tuple(case.case for case in kept.cases))
    baselines = _stored(kept, sessions)
    return run, against_baselines(run, report, part, {}, baselines, Policy(), "")


def _checked_report(kept: Kept) -> Report:
    _, report = _checked(kept, 3)
    return _decided(report)


def _stored(kept: Kept, sessions: int) -> dict[str, Baseline]:
    baselines: dict[str, Baseline] = {}
    for case in kept.cases:
        for number in range(sessions):
            workers = case.base[number::sessions]
            if workers:
                measured = CaseRun(case.case, workers)
                run = Run(BASE, ENVIRONMENT, "2026-03-01T00:00:00+00:00", (measured,))
                old = baselines.get(case.case.id)
                baselines[case.case.id] = with_run(old, run, measured, f"session {number}")
    return baselines


def _sessions(kept: Kept) -> dict[str, Any]:
    """Return which metrics of each case a session goes on for, after every round."""
    policy = Policy()
    return {
        f"{case.case.id} after {rounds}": list(
            undecided_metrics(
                compare_case(
                    case.case, case.base[:rounds], case.head[:rounds], policy, paired=True
                ),
                policy,
                40,
            )
        )
        for case in kept.cases
        for rounds in range(1, len(case.head) + 1)
    }


def all_judged(seeds: int = 1, count: int = 12) -> dict[str, Any]:
    """Return every report of what is kept and of what is simulated, by name."""
    drawn = {f"simulated-{seed}": simulated(seed, count) for seed in range(seeds)}
    return {
        f"{name}-{way}": plain
        for name, kept in {"demo": load(), **drawn}.items()
        for way, plain in judged(kept).items()
    }


def old() -> dict[str, Any]:
    """Return the reports that perfci made of the same when they were last kept."""
    plain: dict[str, Any] = json.loads(lzma.decompress(OLD.read_bytes()))
    return plain


def main(arguments: list[str]) -> None:
    """Keep the demo's measurements, or judge what is kept; or as the golden file ``old``."""
    match arguments:
        case ["keep", *options]:
            keep(options)
        case ["golden"]:
            OLD.write_bytes(lzma.compress(json.dumps(all_judged()).encode()))
        case ["judge", folder, *numbers]:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name, plain in all_judged(*map(int, numbers)).items():
                (Path(folder) / f"{name}.json").write_text(json.dumps(plain, indent=1))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
