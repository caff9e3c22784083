"""perfci beside what users could pick instead, on one machine, one measurement at a time.

    python -m pip install -e . -r benchmarks/peers/requirements.txt
    python benchmarks/peers/run.py --repetitions 10 --json benchmarks/peers/results/run.jsonl
    python -m benchmarks.peers.score            # the tables

Nothing else should run meanwhile. What is already in the file is not measured again; ``--minutes``
ends between two measurements. Each repetition visits tools, settings and conditions in its own
seeded random order, so that the machine's drift meets all alike.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.peers.finding import CONDITIONS, Finding, Measurement, encode, machines, read
from benchmarks.peers.tools import (
    asv_continuous,
    by_hand,
    perfci_compare,
    pyperf_compare,
    pytest_compare,
    raw_welch,
    torch_timer,
)
from benchmarks.peers.workplace import Runner, ToolFailed, Workplace, digest, prepare

TOOLS = {
    "by hand": by_hand,
    "Welch on raw calls": raw_welch,
    "torch.utils.benchmark": torch_timer,
    "pytest-benchmark": pytest_compare,
    "asv": asv_continuous,
    "pyperf": pyperf_compare,
    "perfci": perfci_compare,
}
HERE = Path(__file__).parent
Key = tuple[str, str, str, int]


def main() -> None:
    """Measure what is missing in the file."""
    options = _options()
    scratch = Path(options.scratch or tempfile.gettempdir()) / "perfci-peers"
    scratch.mkdir(parents=True, exist_ok=True)
    place = prepare(scratch.resolve())
    file: Path = options.json
    file.parent.mkdir(parents=True, exist_ok=True)
    done = {measurement.key: measurement for measurement in read([file])} if file.exists() else {}
    if any(about["works"] != digest() for about in machines([file] if done else [])):
        raise SystemExit(f"{file} has results of other works or shares: choose another --json")
    plan = [
        key for key in order(options.repetitions, options.seed, options.only) if key not in done
    ]
    print(f"{len(plan)} measurements to do, {len(done)} there", flush=True)
    if not plan:
        return
    _warm(place, options.timeout, asv=any(key[0] == "asv" for key in plan))
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(machine(options.seed)) + "\n")
    until = time.monotonic() + options.minutes * 60.0
    for number, key in enumerate(plan, start=1):
        if time.monotonic() >= until:
            print("out of time")
            break
        measurement = measure(place, key, options.timeout)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(encode(measurement) + "\n")
        alarms = sum(finding.alarm for finding in measurement.findings)
        said = measurement.failure[-300:] or f"{alarms} alarms of {len(measurement.findings)}"
        print(f"{number}/{len(plan)} {key}: {measurement.seconds:.0f} s, {said}", flush=True)


def order(repetitions: int, seed: int, only: list[str]) -> list[Key]:
    """Return every measurement, in a random order within each repetition."""
    keys = []
    for repetition in range(repetitions):
        of_repetition = [
            (tool, setting, condition, repetition)
            for tool, module in TOOLS.items()
            for setting in module.SETTINGS
            for condition in CONDITIONS
        ]
        random.Random(f"{seed} {repetition}").shuffle(of_repetition)
        keys += of_repetition
    return [key for key in keys if not only or key[0] in only]


def measure(place: Workplace, key: Key, timeout: float) -> Measurement:
    """Let a tool compare base with a condition."""
    tool, setting, condition, repetition = key
    findings: list[Finding] = []
    failure = ""
    with tempfile.TemporaryDirectory(prefix="peer-", dir=place.scratch) as folder:
        runner = Runner(place, Path(folder), timeout)
        started_at = datetime.now(UTC).isoformat(timespec="seconds")
        started = time.perf_counter()
        try:
            findings = TOOLS[tool].measure(runner, setting, condition)
        except ToolFailed as error:
            failure = str(error)
        except (LookupError, StopIteration, TypeError, ValueError) as error:
            failure = f"unreadable output: {error!r}"
        seconds = time.perf_counter() - started
    found = tuple(findings)
    return Measurement(
        tool, setting, condition, repetition, started_at, round(seconds, 2), found, failure
    )


def machine(seed: int) -> dict[str, object]:
    """Return what the figures depend on."""
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    packages = ("perfci", "torch", "pyperf", "asv", "pytest-benchmark")
    return {
        "machine": model,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "works": digest(),
        "seed": seed,
        "load": os.getloadavg()[0],
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _warm(place: Workplace, timeout: float, *, asv: bool) -> None:
    """Fill the compile cache, write .pyc files and let asv build its environment: untimed."""
    with tempfile.TemporaryDirectory(prefix="warm-", dir=place.scratch) as folder:
        runner = Runner(place, Path(folder), max(timeout, 1800.0))
        for branch in ("base", *CONDITIONS):
            runner.python("suites/loops.py", "loop", "--calls", "2", tree=place.tree(branch))
        if asv:
            asv_continuous.prepare(runner)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], choices=TOOLS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--timeout", type=float, default=3600.0, help="s for one command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "run.jsonl")
    parser.add_argument("--scratch", help="folder for checkouts and environments")
    return parser.parse_args()


if __name__ == "__main__":
    main()
