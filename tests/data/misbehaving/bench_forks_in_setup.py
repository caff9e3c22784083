"""Forks, and both processes come back."""
import os  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    os.fork()
    return lambda: None
