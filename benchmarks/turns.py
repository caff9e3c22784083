"""How long a turn should be: the noise of a pair's log ratio in A/A, by the length of a burst.

    python benchmarks/turns.py [--kernel NAME]... [--counts LEAD_IN+CALLS]... [--blocks N]
        [--json FILE]

Two workers of perfci on one core, alive together, as in a round. Blocks of all burst lengths come
in a drawn order, each of 0.3 s a side, so that the same two processes say what each length sees:
the standard deviation of a block's log ratio, of its first half and of the whole, and the wall
time that it took. Where bursts have no lead-in, ``call_1`` and so on say how long the first calls
after the other side's take, in units of a burst's median.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from socket import socketpair
from typing import Any

from perfci.measure.executor import Executor
from perfci.measure.machine.quiet import child_environment
from perfci.measure.selection import SAMPLE_S
from perfci.measure.workers import Launch, Worker
from perfci.model.measuring import Quiet, WorkerOutput
from perfci.model.worker import WorkOrder
from perfci.verdict.sampled_comparisons import side_by_side

ROOT = Path(__file__).resolve().parent.parent
BLOCK_S = 0.3
POSITIONS = 8
SOURCE = """
import perfci, torch
from zoo import Attention, Mixer

def of(model, *shape):
    model, x = model.eval(), torch.randn(*shape)
    return lambda: model(x)

x, big, out = torch.randn(4), torch.randn(4 << 20), torch.empty(4 << 20)
buffers = [torch.randn(64 << 10) for _ in range(16)]

KERNELS = {
    "tiny_op": lambda: lambda: x + 1,
    "attention_b1": lambda: of(Attention(), 1, 128, 128),
    "attention_b8": lambda: of(Attention(), 8, 128, 128),
    "mixer_b1": lambda: of(Mixer(), 1, 3, 32, 32),
    "mixer_b8": lambda: of(Mixer(), 8, 3, 32, 32),
    "add_16_MiB": lambda: lambda: torch.add(big, 1, out=out),
    "16x256_KiB": lambda: lambda: [buffer + 1 for buffer in buffers],
}

@perfci.benchmark(kernel=list(KERNELS))
def case(kernel):
    torch.set_grad_enabled(False)
    return KERNELS[kernel]()
"""
KERNELS = (
    "tiny_op", "attention_b1", "attention_b8", "mixer_b1", "mixer_b8", "add_16_MiB", "16x256_KiB"
)  # fmt: skip


@dataclass(frozen=True)
class Way:
    """A length of bursts in s, and the share of it that is not recorded."""

    burst_s: float
    lead_in: float

    def __str__(self) -> str:
        return f"{self.burst_s * 1e3:g}/{self.burst_s * self.lead_in * 1e3:g}"

    def order(self, call_s: float) -> dict[str, int]:
        """Return the block's order: both sides make as many calls."""
        call_s += SAMPLE_S
        fit = max(1, int(self.burst_s / call_s))
        lead_in = math.ceil(self.lead_in * fit)
        calls = max(1, fit - lead_in)
        bursts = max(4, math.ceil(BLOCK_S / (calls + lead_in) / call_s))
        return {"bursts": bursts, "calls": calls, "lead_in": lead_in}


@dataclass(frozen=True)
class Counted:
    """So many calls that are not recorded, then so many that are: ``1+2``."""

    lead_in: int
    calls: int

    def __str__(self) -> str:
        return f"{self.lead_in}+{self.calls}"

    def order(self, call_s: float) -> dict[str, int]:
        """Return the block's order, as long as another way's."""
        calls = self.lead_in + self.calls
        bursts = max(4, math.ceil(BLOCK_S / calls / (call_s + SAMPLE_S)))
        return {"bursts": bursts, "calls": self.calls, "lead_in": self.lead_in}


WAYS: tuple[Way | Counted, ...] = (
    Way(0.01, 0.1),
    Way(0.02, 0.05),
    Way(0.005, 0.1),
    Way(0.0025, 0.0),
    Way(0.0025, 0.1),
    Way(0.0025, 0.2),
    Way(0.001, 0.0),
    Way(0.001, 0.2),
)


def start(folder: Path, kernel: str, stack: ExitStack) -> tuple[list[Worker], float]:
    """Start both sides' workers, to where they are warm; return them and the slower's call in s."""
    file = folder / "bench_turns.py"
    file.write_text(SOURCE, encoding="utf-8")
    path = (str(ROOT / "examples" / "demo" / "base"),)
    environment = child_environment(os.environ, Quiet(), 1, (), {})
    launch = Launch(sys.executable, environment, affinity=(max(os.sched_getaffinity(0)),))
    workers, call_s = [], 0.0
    for side, end in zip(("base", "head"), socketpair(), strict=True):
        order = WorkOrder(
            root=str(folder),
            python_path=path,
            benchmark_file=str(file),
            case=f"case[kernel={kernel}]",
            side=side,
            accuracy=False,
            growth=False,
        )
        with end:
            worker = Executor().start(order, launch, budget_end=math.inf, turns=end.fileno())
        stack.enter_context(closing(worker))
        workers.append(worker)
        call_s = max(call_s, worker.expect("ready", 300.0)["call_s"])
    return workers, call_s


def median_of_bursts(samples: array[int], calls: int) -> list[float]:
    """Return each burst's median in ns."""
    return [statistics.median(samples[at : at + calls]) for at in range(0, len(samples), calls)]


def log_ratio(first: list[float], second: list[float], share: float) -> float:
    """Return log(second ÷ first) of the first ``share`` of a block, as a round computes it."""
    bursts = int(len(first) * share)
    outputs = [
        WorkerOutput("case", side, 1, {}, 0, bursts={"ns": tuple(medians[:bursts])})
        for side, medians in (("first", first), ("second", second))
    ]
    return side_by_side(outputs, (bursts,))[1].beside["ns"]


def measured(kernel: str, blocks: int, ways: Sequence[Way | Counted]) -> list[dict[str, Any]]:
    """Let two workers of ``kernel`` run ``blocks`` blocks each way; return what each gave."""
    said: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        workers, call_s = start(Path(scratch), kernel, stack)
        orders = {str(way): way.order(call_s) for way in ways}
        schedule = [
            (name, first) for name in orders for _ in range(blocks // 2) for first in (0, 1)
        ]
        random.Random(0).shuffle(schedule)
        for number, (name, first) in enumerate(schedule):
            began = time.perf_counter()
            for place, worker in enumerate(workers):
                turn = {"block": number, "first": place == first}
                worker.send({"do": "block", **orders[name], "turn": turn})
            inside = [worker.expect("block", 300.0)["duration"] for worker in workers]
            wall_s = time.perf_counter() - began
            said.append({"way": name, "first": first, "wall_s": wall_s, "inside_s": sum(inside)})
            said[-1] |= orders[name]
        samples = []
        for worker in workers:
            worker.send({"do": "finish"})
            samples.append(worker.expect("output", 300.0)["measurement"]["samples_ns"])
            worker.stage = "done"
    for block, *encoded in zip(said, *samples, strict=True):
        of_sides = [array("q", base64.b64decode(text)) for text in encoded]
        base, head = (median_of_bursts(one, block["calls"]) for one in of_sides)
        order = (base, head) if block["first"] == 0 else (head, base)
        sign = 1.0 if block["first"] == 0 else -1.0
        block["half"], block["whole"] = (sign * log_ratio(*order, share) for share in (0.5, 1.0))
        both = sorted((*of_sides[0], *of_sides[1]))
        block["p50"], block["p95"] = both[len(both) // 2], both[int(len(both) * 0.95)]
        if block["calls"] > 2 and not block["lead_in"]:
            bursts = [
                one[at : at + block["calls"]]
                for one in of_sides
                for at in range(0, len(one), block["calls"])
            ]
            block["first_calls"] = [
                statistics.median(burst[place] / statistics.median(burst) for burst in bursts)
                for place in range(min(POSITIONS, block["calls"]))
            ]
    return said


def summary(blocks: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return by way: spreads in %, order's bias in %, wall time in s, levels to the first way's."""
    found: dict[str, dict[str, float]] = {}
    for way in dict.fromkeys(block["way"] for block in blocks):
        mine = [block for block in blocks if block["way"] == way]
        by_first = [[b["whole"] for b in mine if b["first"] == first] for first in (0, 1)]
        spread = statistics.stdev(b["whole"] for b in mine)
        found[way] = {
            "half": 100 * statistics.stdev(b["half"] for b in mine),
            "whole": 100 * spread,
            "second_by": 50 * (statistics.mean(by_first[0]) - statistics.mean(by_first[1])),
            "wall_s": statistics.mean(b["wall_s"] for b in mine),
            "share": statistics.mean(b["inside_s"] / b["wall_s"] for b in mine),
            "calls": mine[0]["calls"],
            "p50": statistics.median(b["p50"] for b in mine) / 1e3,
            "p95": statistics.median(b["p95"] for b in mine) / 1e3,
        }
        if first := [b["first_calls"] for b in mine if "first_calls" in b]:
            for place, ratios in enumerate(zip(*first, strict=True), 1):
                found[way][f"call_{place}"] = statistics.median(ratios)
    return found


def counted(text: str) -> Counted:
    """Return the way that ``1+2`` names."""
    lead_in, calls = map(int, text.split("+"))
    return Counted(lead_in, calls)


def main() -> None:
    """Measure each kernel and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", action="append", choices=KERNELS)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument(
        "--counts", action="append", type=counted, help="LEAD_IN+CALLS instead of lengths in ms"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for kernel in options.kernel or KERNELS:
        found[kernel] = summary(measured(kernel, options.blocks, options.counts or WAYS))
        print(f"{kernel}, burst/lead-in in ms")
        for way, row in found[kernel].items():
            print(f"  {way:12}", "  ".join(f"{name} {value:.3g}" for name, value in row.items()))
        sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
