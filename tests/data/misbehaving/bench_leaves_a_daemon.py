"""Leaves a daemon behind: forked twice, in a session of its own."""
import os
import time
from pathlib import Path
import perfci

@perfci.benchmark
def misbehaving():
    if os.fork() == 0:
        os.setsid()
        if daemon := os.fork():
            Path(__file__).with_name("daemon.pid").write_text(str(daemon))
            os._exit(0)
        time.sleep(300)
        os._exit(0)
    os.wait()
    return lambda: None
