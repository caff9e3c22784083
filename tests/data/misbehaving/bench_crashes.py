"""Crashes with a signal, as broken native code does."""
import ctypes
import perfci

@perfci.benchmark
def misbehaving():
    ctypes.string_at(0)
