"""A program, run with PID COMMAND... Becomes the command, which the kernel kills when PID dies.

The child itself has to set ``PR_SET_PDEATHSIG``. A ``preexec_fn`` could, but would run Python
between fork and exec. There, other threads (torch's) are gone, and locks that they held stay held.
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
    if os.getppid() != int(parent):  # the parent has died already
        return
    try:
        os.execv(shutil.which(words[0]) or words[0], words)  # noqa: S606 (the user's own words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode())
        sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main()
