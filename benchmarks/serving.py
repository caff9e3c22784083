"""What serving's verdicts are of equal sides, and of 5 ms planted in a phase of each request.

    python benchmarks/serving.py [--reports N] [--seconds S] [-k NAME]

With ``--seconds 0`` nothing is planted.

The server of the tests sleeps 3 ms before the first of 8 tokens and 1 ms before each other. Prints,
for each report, the rows of the phases: how many intervals of equal sides hold 1, and what was
found of the planted time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples"))

from demo import commit, git  # noqa: E402

SERVER = HERE.parent / "tests" / "data" / "serving" / "serve.py"
BENCHMARK = """\
import sys
import perfci

@perfci.benchmark(concurrency=[1, 4])
def served(concurrency):
    server = perfci.server([sys.executable, "serve.py", "{port}"], ready="/health")
    return perfci.generate(server.url, body={"prompt": "one"}, concurrency=concurrency)
"""
PHASES = {"prefill": 0.003, "decode": 0.001}
METRICS = (
    *("time_to_first_token", "inter_token_latency_p50", "inter_token_latency_p95", "end_to_end"),
    "tokens_per_second",
)


def main() -> None:
    """Build, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.005)
    parser.add_argument("-k", dest="words", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="serving-") as folder:
        repository = Path(folder) / "repository"
        benchmark = repository / "benchmarks" / "bench_served.py"
        benchmark.parent.mkdir(parents=True)
        benchmark.write_text(BENCHMARK)
        _serve(repository)
        git(repository, "init", "--quiet", "--initial-branch=main")
        commit(repository, "base")
        held: Counter[str] = Counter()
        verdicts: Counter[str] = Counter()
        for _ in range(options.reports):
            report = _report(repository, options.words)
            verdicts[report["verdict"]["status"]] += 1
            for row in _rows(report):
                held[f"{row['metric']} rows"] += 1
                held[f"{row['metric']} intervals with 1"] += row["ratio_lo"] <= 1 <= row["ratio_hi"]
                _print("equal sides", row)
        print(
            dict(verdicts), *(f"{name}: {count}" for name, count in sorted(held.items())), sep="\n"
        )
        for phase, usual in PHASES.items() if options.seconds else ():
            _serve(repository, **{phase: usual + options.seconds})
            for row in _rows(_report(repository, options.words)):
                _print(f"{options.seconds * 1e3:g} ms in {phase}", row)


def _serve(repository: Path, **phases: float) -> None:
    text = SERVER.read_text()
    for phase, seconds in phases.items():
        before = f'"--{phase}", type=float, default={PHASES[phase]}'
        text = text.replace(before, before.replace(str(PHASES[phase]), str(seconds)))
    (repository / "serve.py").write_text(text)


def _report(repository: Path, words: str) -> dict[str, Any]:
    options = ("--allow-same-commit", "--json", "-", "-q")
    line = [sys.executable, "-m", "perfci", "compare", "HEAD", ".", *options]
    line += ["-k", words] if words else []
    ran = subprocess.run(line, cwd=repository, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


def _rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in report["results"] if row["metric"] in METRICS]


def _print(planted: str, row: dict[str, Any]) -> None:
    interval = f"{row['ratio']:.3f} ({row['ratio_lo']:.3f} to {row['ratio_hi']:.3f})"
    print(f"{planted}: {row['case']} {row['metric']} {interval} {row['status']}", flush=True)


if __name__ == "__main__":
    main()
