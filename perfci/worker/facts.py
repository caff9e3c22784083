"""The facts of this side's Python, torch and device that decide speed."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from pathlib import Path

_DRIVER = Path("/proc/driver/nvidia/version")


def side_facts() -> dict[str, str]:
    """Return them as text. torch isn't imported for this where no benchmark needs it."""
    facts = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
    }
    torch = sys.modules.get("torch")
    if torch is None:
        try:
            facts["torch"] = importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            facts["torch"] = "none"
        return facts
    facts["torch"] = str(torch.__version__)
    facts["torch_threads"] = str(torch.get_num_threads())
    facts["cuda"] = str(torch.version.cuda or "none")
    if torch.cuda.is_available():
        facts["device_name"] = torch.cuda.get_device_name(0)
        facts["device_count"] = str(torch.cuda.device_count())
        facts["cudnn"] = str(torch.backends.cudnn.version())
        facts["driver"] = driver_version(_DRIVER) or "unknown"
    return facts


def driver_version(path: Path) -> str | None:
    """Return NVIDIA's kernel driver version; torch knows only the CUDA version it serves."""
    if not path.exists():
        return None
    found = re.search(
        r"\b\d{3,}\.\d+(\.\d+)?\b", path.read_text(encoding="utf-8", errors="replace")
    )
    return found.group() if found else None
