"""The worker's own memory, from /proc. Never ru_maxrss: a child inherits its parent's."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def host_memory(field: str) -> int:
    """Return ``VmRSS`` or ``VmHWM`` in bytes."""
    for line in _STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field} in {_STATUS}")


def reset_peak() -> str:
    """Reset the high-water mark; return why it could not be, or an empty text."""
    try:
        _CLEAR.write_text("5", encoding="ascii")
    except OSError as error:
        return f"the high-water mark can't be reset: {error.strerror}"
    slack = 1 << 20
    if host_memory("VmHWM") > host_memory("VmRSS") + slack:
        return "the kernel didn't reset the high-water mark"
    return ""
