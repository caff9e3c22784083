"""What the first calls of a burst cost after the other side's: why bursts have a lead-in.

    python benchmarks/first_calls.py

Two processes on one core take bursts of 10 ms in turn, without a lead-in, over the demo's eager
cases. Prints the time of a burst's first calls, in units of the burst's median call.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from array import array
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BURST_S = 0.01
BURSTS = 200
POSITIONS = 5


def be_a_side() -> None:
    """Take a burst of the case named on each line, and answer with its samples in ns."""
    sys.path[:0] = [str(ROOT / "examples" / "demo" / "base")]
    import torch
    from zoo import Attention, Mixer

    from perfci.worker.bursts import burst

    torch.set_num_threads(1)
    works = {}
    for batch in (1, 8):
        attention, mixer = Attention().eval(), Mixer().eval()
        tokens, images = torch.randn(batch, 128, 128), torch.randn(batch, 3, 32, 32)
        works[f"attention[batch={batch}]"] = lambda m=attention, x=tokens: m(x)
        works[f"mixer[batch={batch}]"] = lambda m=mixer, x=images: m(x)
    with torch.inference_mode():
        for work in works.values():
            burst(work, array("q"), 0.3, 1)
        print(json.dumps(list(works)), flush=True)
        for line in sys.stdin:
            samples = array("q")
            burst(works[line.strip()], samples, BURST_S, 1)
            print(json.dumps(samples.tolist()), flush=True)


def main() -> None:
    """Let two sides take turns and print, case by case, what the first calls take."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sides = [
        subprocess.Popen(
            [sys.executable, __file__, "--side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    streams = [(side.stdin, side.stdout) for side in sides]
    ready = [json.loads(answers.readline()) for _, answers in streams if answers]
    for case in ready[0]:
        bursts = []
        for orders, answers in streams * BURSTS:
            assert orders is not None
            assert answers is not None
            print(case, file=orders, flush=True)
            bursts.append(json.loads(answers.readline()))
        first = [
            statistics.median(burst[position] / statistics.median(burst) for burst in long_enough)
            for position in range(POSITIONS)
            if (long_enough := [burst for burst in bursts if len(burst) > position])
        ]
        calls = statistics.median(map(len, bursts))
        print(case, [round(one, 2) for one in first], f"{calls:g} calls a burst")


if __name__ == "__main__":
    be_a_side() if sys.argv[1:] == ["--side"] else main()
