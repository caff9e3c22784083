"""Closes every file descriptor, perfci's pipes too."""
import os  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    os.closerange(0, 4096)
    return lambda: None
