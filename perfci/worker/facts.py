"""The facts of this side's Python, torch and device that decide speed."""

from __future__ import annotations

import importlib.metadata
import platform
import sys


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
    facts["cuda"] = str(torch.version.cuda or "none")
    if torch.cuda.is_available():
        facts["device_name"] = torch.cuda.get_device_name(0)
        facts["device_count"] = str(torch.cuda.device_count())
        facts["cudnn"] = str(torch.backends.cudnn.version())
    return facts
