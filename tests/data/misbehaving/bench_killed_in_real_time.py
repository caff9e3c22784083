"""Ends by a real-time signal, which has no name of its own."""
import os  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    os.kill(os.getpid(), 40)
    return lambda: None
