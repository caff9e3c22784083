"""Is killed from outside, as the kernel does when memory ends."""
import os  # noqa: E402
import signal
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    os.kill(os.getpid(), signal.SIGKILL)
