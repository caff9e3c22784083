"""Report files that a use case is given: the report, or what its cases took."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from perfci.app.notices import Say
from perfci.errors import OutsideError
from perfci.files import read_regular

if TYPE_CHECKING:
    from perfci.model.report import Report


def load_report(path: Path) -> Report:
    """Return the report in ``path``. OutsideError where there is none, or a damaged one."""
    from perfci.render.limits import MOST_BYTES

    try:
        content = read_regular(path, MOST_BYTES)
    except OSError as error:
        raise OutsideError(
            "unreadable",
            f"{path} can't be read: {error.strerror}",
            "Name a file that --json wrote.",
        ) from error
    return report_in(content, str(path))


def report_in(content: bytes, name: str) -> Report:
    """Return the report that ``content`` is; OutsideError, naming it, on anything else."""
    from perfci.render.report_json import read_report

    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OutsideError(
            "unreadable", f"{name} can't be read: not text", "Give it what --json wrote."
        ) from error
    return read_report(text, name)


def load_durations(path: Path | None, say: Say) -> Mapping[str, float]:
    """Return what each case took in the report in ``path``, in s; nothing where there is none."""
    if path is None:
        return {}
    durations = load_report(path).durations
    if not durations:
        say(f"perfci: {path} has no durations; all cases count alike.", err=True)
    return durations
