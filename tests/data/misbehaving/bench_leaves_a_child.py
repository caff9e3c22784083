"""Leaves a process behind that detached itself."""
import subprocess
import perfci

@perfci.benchmark
def misbehaving():
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    return lambda: None
