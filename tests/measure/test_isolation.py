"""perfci's own process, with all its secrets, is closed to the code that it measures."""

from __future__ import annotations

import subprocess
import sys

_CLOSING = """
import ctypes
from perfci.measure.machine.isolation import close_to_others
close_to_others()
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))  # PR_GET_DUMPABLE
"""


def test_the_kernel_refuses_others_a_look_into_a_closed_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CLOSING], check=True, capture_output=True, text=True
    )
    assert done.stdout == "0\n"
