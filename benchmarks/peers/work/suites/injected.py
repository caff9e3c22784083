"""Is the slow-down what it says? Both versions in one process, in turn, on the same objects."""

import argparse
import json
import math
import statistics
import time

from peerwork import NAMES
from peerwork.pace import paced
from peerwork.works import WORKS


def block(call, calls):
    """Return the mean and the median seconds of ``calls`` calls."""
    seconds = []
    for _ in range(calls):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.fmean(seconds), statistics.median(seconds)


def calls_in(seconds, call):
    """Return how many calls fit, having warmed up with as many."""
    calls = 1
    while (taken := block(call, calls)[0] * calls) < seconds / 2:
        calls *= 2
    return max(1, round(calls * seconds / taken))


def ratio(name, share, seconds):
    """Return the slow-down of means and of medians, from log ratios of ABBA blocks.

    Each is the median over the blocks: the mean of a block that another tenant disturbed tells
    nothing. The standard error is that of a median of normal values, from the quartiles.
    """
    work = WORKS[name]()
    plain, slow = paced(work, 0.0), paced(work, share)
    calls = calls_in(0.01, plain)
    block(slow, 10 * calls)
    logs = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        first, second, third, fourth = (block(c, calls) for c in (plain, slow, slow, plain))
        logs.append([math.log((second[i] + third[i]) / (first[i] + fourth[i])) for i in (0, 1)])
    found = {"benchmark": name, "share": share, "blocks": len(logs)}
    found["plain_s"] = block(plain, calls)[1]
    for i, of in enumerate(("mean", "median")):
        low, middle, high = statistics.quantiles([values[i] for values in logs], n=4)
        found[of] = math.expm1(middle)
        found[f"{of}_error"] = 1.2533 * (high - low) / 1.349 / math.sqrt(len(logs))
    return found


def main():
    """Print a line of JSON for each benchmark and share."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    for name in NAMES:
        for share in (0.0, 0.02, 0.05):
            print(json.dumps(ratio(name, share, options.seconds)), flush=True)


if __name__ == "__main__":
    main()
