"""Calls sys.exit in set-up."""
import sys  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    sys.exit(0)
