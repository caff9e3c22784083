"""The worker's own memory, from /proc. Never ru_maxrss: a child inherits its parent's."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_SLACK = 1 << 20
_METRICS = ("peak_host_memory", "host_memory_over_setup")


class HostMemory:
    """The resident memory of one worker: after set-up, and at most over its bursts."""

    def __init__(self) -> None:
        self._after_setup: int | None = None
        self._why_missing = "the peak was never reset"

    def note_setup(self) -> None:
        """Remember what is resident now: set-up is done and nothing was called yet."""
        self._after_setup = resident("VmRSS")

    def reset_peak(self) -> None:
        """Start the high-water mark anew, and read it back: not every kernel does it."""
        try:
            _CLEAR.write_text("5", encoding="ascii")
        except OSError as error:
            self._why_missing = f"the high-water mark can't be reset: {error.strerror}"
            return
        now, peak = resident("VmRSS"), resident("VmHWM")
        if now is None or peak is None:
            self._why_missing = f"this kernel tells no high-water mark in {_STATUS}"
        elif peak > now + _SLACK:
            self._why_missing = "the kernel didn't reset the high-water mark"
        else:
            self._why_missing = ""

    def peaks(self, samples_bytes: int) -> tuple[dict[str, float], dict[str, str]]:
        """Return the peak since the reset and its growth over set-up, or why they are missing.

        ``samples_bytes`` is what perfci's own samples take: a quicker side has more of them, and
        must not look hungrier for it. The growth holds what the first call left (an allocator's
        pages, a compiler's modules) and may be negative where set-up's own pages were given back.
        """
        peak = None if self._why_missing else resident("VmHWM")
        if peak is None or self._after_setup is None:
            return {}, dict.fromkeys(_METRICS, self._why_missing or f"no memory in {_STATUS}")
        own = float(peak - samples_bytes)
        return {
            "peak_host_memory": own,
            "host_memory_over_setup": own - self._after_setup,
        }, {}


def resident(field: str) -> int | None:
    """Return ``VmRSS`` or ``VmHWM`` in bytes; None where the kernel doesn't tell."""
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None
