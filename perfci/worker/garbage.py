"""When Python collects garbage: never inside a burst, and always before one.

Left to the collector, a collection falls into some samples and not into others. Left lying, what
calls leave in reference cycles would count as memory, and more of it the quicker the work is.
"""

from __future__ import annotations

import gc
import os


def _left_to_python() -> bool:
    """Whether the quiet setting is off."""
    return os.environ.get("PERFCI_GC") == "1"


def freeze() -> None:
    """Collect what there is, and look at what is left never again: a fork would copy its pages."""
    if not _left_to_python():
        gc.collect()
        gc.freeze()


def stop_collecting() -> None:
    """From here on ``collect`` alone collects, and goes through nothing that is there by now."""
    freeze()
    if not _left_to_python():
        gc.disable()


def collect() -> None:
    """Free what calls have left since; takes microseconds where they have left nothing."""
    if not _left_to_python():
        gc.collect()
