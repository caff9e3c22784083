"""Closes every file descriptor, perfci's pipes too."""
import os
import perfci

@perfci.benchmark
def misbehaving():
    os.closerange(0, 4096)
    return lambda: None
