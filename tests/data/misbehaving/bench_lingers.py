"""Closes every file descriptor, perfci's pipes too, and crashes a good while later."""
import ctypes
import os  # noqa: E402
import time
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    os.closerange(0, 4096)
    time.sleep(2)
    ctypes.string_at(0)
