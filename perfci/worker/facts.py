"""The facts of this side's Python, torch and device that decide speed."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import re
import sys
from pathlib import Path
from typing import Any

from perfci.worker.device import DRIVER


def side_facts(*, needs_torch: bool, driver: Path = DRIVER) -> dict[str, str]:
    """Return them as text. torch is imported for this only where it may decide the device.

    That is where the work ``needs_torch``, imported or not as yet, and on a machine with a card:
    there any benchmark may import it in its set-up, and two cards would else look like one.
    """
    facts = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
    }
    torch = sys.modules.get("torch")
    unusable = ""
    if torch is None and (needs_torch or driver.exists()):
        torch, unusable = _imported("torch")
    if torch is None:
        facts["torch"] = _installed("torch") + unusable
        return facts
    facts["torch"] = str(torch.__version__)
    facts["torch_threads"] = str(torch.get_num_threads())
    facts["cuda"] = str(torch.version.cuda or "none")
    if torch.cuda.is_available():
        facts["device_name"] = torch.cuda.get_device_name(0)
        facts["device_count"] = str(torch.cuda.device_count())
        facts["cudnn"] = str(torch.backends.cudnn.version())
        facts["driver"] = driver_version(driver) or "unknown"
    return facts


def _imported(name: str) -> tuple[Any, str]:
    """Import a library; what needs it, and can't have it, fails and says so by itself."""
    try:
        return importlib.import_module(name), ""
    except Exception as error:  # noqa: BLE001 (broken in any way: told as a fact)
        absent = isinstance(error, ModuleNotFoundError) and error.name == name
        return None, "" if absent else ", which can't be imported"


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def driver_version(path: Path) -> str | None:
    """Return NVIDIA's kernel driver version; torch knows only the CUDA version it serves."""
    if not path.exists():
        return None
    found = re.search(
        r"\b\d{3,}\.\d+(\.\d+)?\b", path.read_text(encoding="utf-8", errors="replace")
    )
    return found.group() if found else None
