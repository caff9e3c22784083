"""Run as a file, PID COMMAND...: becomes the command, which the kernel kills when PID dies.

``PR_SET_PDEATHSIG`` has to be set by the child. A ``preexec_fn`` would run Python between fork and
exec, in a process whose threads (torch's) are gone with their locks held.
"""

import ctypes
import os
import shutil
import signal
import sys

_PR_SET_PDEATHSIG = 1
_NOT_FOUND = 127


def main() -> None:
    """Tie this process to its parent and become the command."""
    parent, *words = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it died before
        return
    try:
        os.execv(shutil.which(words[0]) or words[0], words)  # noqa: S606 (the user's own words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
        sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main()
