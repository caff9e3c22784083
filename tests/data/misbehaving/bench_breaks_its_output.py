"""Replaces the standard streams by something else, and fails."""
import sys
import perfci

@perfci.benchmark
def misbehaving():
    sys.stdout = sys.stderr = object()
    raise ValueError("and now?")
