"""Closes every file descriptor, perfci's pipes too, and crashes a good while later."""
import ctypes
import os
import time
import perfci

@perfci.benchmark
def misbehaving():
    os.closerange(0, 4096)
    time.sleep(2)
    ctypes.string_at(0)
