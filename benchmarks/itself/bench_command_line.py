"""perfci measuring itself: what everybody waits for who types its name."""

import subprocess
import sys

import perfci


def _command(*arguments):
    # A process of its own, which finds the `perfci` of the folder it is started in: the side's.
    # In this process `perfci` is the copy that measures, the same on both sides.
    def work():
        command = [sys.executable, "-m", "perfci", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    return work


@perfci.benchmark
def help_of_all():
    return _command("--help")


@perfci.benchmark
def help_of_compare():
    return _command("compare", "--help")
