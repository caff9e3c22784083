"""Is killed from outside, as the kernel does when memory ends."""
import os
import signal
import perfci

@perfci.benchmark
def misbehaving():
    os.kill(os.getpid(), signal.SIGKILL)
