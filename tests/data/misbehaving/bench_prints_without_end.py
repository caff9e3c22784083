"""Prints 4 MB in set-up, and goes on printing in every call."""
import sys
import perfci

@perfci.benchmark
def misbehaving():
    for _ in range(4):
        sys.stdout.write("x" * (1 << 20))
    return lambda: print("and another line")
