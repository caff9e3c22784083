"""Where the templates are: inside an installed perfci, beside the package in a checkout."""

from __future__ import annotations

from pathlib import Path

import perfci
from perfci.errors import OutsideError


def template_folder() -> Path:
    """Return the folder of the templates; OutsideError where an installation lacks it."""
    package = Path(perfci.__file__).parent
    for folder in (package / "templates", package.parent / "templates"):
        if (folder / "comment.md.j2").is_file():
            return folder
    raise OutsideError(
        "no-templates",
        f"{package} lacks its templates",
        "Install perfci again: pip install --force-reinstall perfci",
    )


def read_template(name: str) -> str:
    """Return the text of one template; OutsideError where it can't be read."""
    path = template_folder() / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OutsideError(
            "no-template",
            f"{path} can't be read: {error.strerror}",
            "Install perfci again: pip install --force-reinstall perfci",
        ) from error
