"""Replaces the standard streams by something else, and fails."""
import sys  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    sys.stdout = sys.stderr = object()
    raise ValueError("and now?")
