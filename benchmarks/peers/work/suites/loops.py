"""What people write by hand: loops with a clock around them. Prints JSON by benchmark.

python loops.py each --warmup 20 --calls 200     the seconds of each call
python loops.py loop --warmup 1 --calls 100      one mean of a whole loop
"""

import argparse
import json
import time

from peerwork import NAMES, build


def each(call, calls):
    """Return the seconds of every single call."""
    seconds = []
    for _ in range(calls):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return seconds


def loop(call, calls):
    """Return the mean of a loop of calls, as the only value."""
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return [(time.perf_counter() - started) / calls]


def main():
    """Measure every benchmark in this process, one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=["each", "loop"])
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--calls", type=int, default=100)
    options = parser.parse_args()
    found = {}
    for name in NAMES:
        call = build(name)
        for _ in range(options.warmup):
            call()
        found[name] = (each if options.how == "each" else loop)(call, options.calls)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
