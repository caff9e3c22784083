"""Forgets to return the callable."""
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    lambda: 1
