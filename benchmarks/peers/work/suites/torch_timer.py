"""The suite for torch.utils.benchmark: prints each measurement's raw times as JSON."""

import argparse
import json

from peerwork import NAMES, build
from torch.utils.benchmark import Timer


def main():
    """Measure every benchmark in this process with blocked_autorange."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--min-run-time", type=float)
    options = parser.parse_args()
    limits = {} if options.min_run_time is None else {"min_run_time": options.min_run_time}
    found = {}
    for name in NAMES:
        timer = Timer("call()", globals={"call": build(name)}, label=name)
        measured = timer.blocked_autorange(**limits)
        found[name] = measured.times
    print(json.dumps(found))


if __name__ == "__main__":
    main()
