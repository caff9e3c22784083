"""A launcher of ranks, as `srun` is one: run as a file, it starts a command so many times.

    launcher.py [--second PID] [--size N] [--without RANK] [--unnumbered] TASKS COMMAND...

Each process has `SLURM_PROCID`. With a second node the later half of them runs on that.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

NODE = "n2"
_HELD = f"hostname {NODE} && ip link set lo up && echo && exec cat"
_ENTER = ("nsenter", "--net", "--uts", "--target")


@contextlib.contextmanager
def second_node() -> Iterator[int]:
    """Join this machine by a cable to itself in another network, under another name.

    Yields the id of a process there. For root alone.
    """
    with subprocess.Popen(
        ["unshare", "--net", "--uts", "sh", "-c", _HELD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as held:
        assert held.stdout
        assert held.stdout.readline(), "no network of its own for the second node"
        number = held.pid
        here, there = f"pf{number}a", f"pf{number}b"
        network = f"10.{64 + number // 16384 % 128}.{number // 64 % 256}"
        ours, theirs = (f"{network}.{number % 64 * 4 + one}/30" for one in (1, 2))
        inside = (*_ENTER, str(number))
        for command in (
            (
                "ip",
                "link",
                "add",
                here,
                "type",
                "veth",
                "peer",
                "name",
                there,
                "netns",
                str(number),
            ),
            ("ip", "address", "add", ours, "dev", here),
            ("ip", "link", "set", here, "up"),
            (*inside, "ip", "address", "add", theirs, "dev", there),
            (*inside, "ip", "link", "set", there, "up"),
        ):
            subprocess.run(command, check=True)
        try:
            yield number
        finally:
            held.kill()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--second")
    parser.add_argument("--size", type=int)
    parser.add_argument("--without", type=int)
    parser.add_argument("--unnumbered", action="store_true")
    parser.add_argument("tasks", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    started = []
    for rank in range(asked.tasks):
        if rank == asked.without:
            continue
        own = {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(asked.size or asked.tasks)}
        variables = {**os.environ, **({} if asked.unnumbered else own)}
        away = asked.second and rank >= asked.tasks // 2
        before = (*_ENTER, asked.second) if away else ()
        started.append(subprocess.Popen((*before, *asked.command), env=variables))
    return max([one.wait() for one in started], default=0)


if __name__ == "__main__":
    sys.exit(main())
