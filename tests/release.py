"""Say what a release still lacks; the release workflow goes no further then.

    python -m tests.release VERSION

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# PEP 440's public versions, as perfci uses them: 1.2.3, and 1.2.3rc1 before it
PUBLIC = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")
PLACEHOLDER = "OWNER/"
MENTIONING = ("pyproject.toml", ".github/CODEOWNERS", ".github/ISSUE_TEMPLATE/config.yml")
"""Those that have to name the repository's address."""


def main(arguments: list[str]) -> int:
    """Print each fault; return 0 where there is none."""
    if len(arguments) != 1:
        print("usage: python -m tests.release VERSION", file=sys.stderr)
        return 2
    wrong = faults(ROOT, arguments[0])
    print("\n".join(wrong) or f"{arguments[0]} can be released")
    return 1 if wrong else 0


def faults(root: Path, version: str) -> list[str]:
    """Return what keeps the checkout ``root`` from being released as ``version``."""
    wrong = []
    if not PUBLIC.fullmatch(version):
        wrong.append(f"{version!r} is no version such as 1.2.3 or 1.2.3rc1")
    own = _found(r'VERSION = "(.+)"', root / "perfci" / "version.py")
    if own != version:
        wrong.append(f"perfci/version.py says {own}, not {version}")
    heading = _found(r"(?m)^## (.+)$", root / "CHANGELOG.md")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        wrong.append(f"CHANGELOG.md begins with `{heading}`, not with `{version} (YYYY-MM-DD)`")
    wrong += [
        f"{name} has `{PLACEHOLDER}…`: put the repository's owner there"
        for name in MENTIONING
        if PLACEHOLDER in (root / name).read_text(encoding="utf-8")
    ]
    return wrong


def _found(pattern: str, file: Path) -> str:
    match = re.search(pattern, file.read_text(encoding="utf-8"))
    return match[1] if match else "nothing"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
