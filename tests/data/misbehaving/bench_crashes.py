"""Crashes with a signal, as broken native code does."""
import ctypes
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    ctypes.string_at(0)
