"""perfci measuring itself: what everybody waits for who types its name."""

import sys

import perfci

# A process of its own, which finds the `perfci` of the folder it is started in: the side's.
# In this process `perfci` is the copy that measures, the same on both sides.
LINE = [sys.executable, "-m", "perfci"]


@perfci.benchmark
def help_of_all():
    return perfci.command([*LINE, "--help"])


@perfci.benchmark
def help_of_compare():
    return perfci.command([*LINE, "compare", "--help"])
