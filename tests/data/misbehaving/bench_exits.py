"""Calls sys.exit in set-up."""
import sys
import perfci

@perfci.benchmark
def misbehaving():
    sys.exit(0)
