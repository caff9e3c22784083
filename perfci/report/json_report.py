"""The report file, ``perfci.report/1``: scripts read its field names, so they stay."""

from __future__ import annotations

from typing import Any

import msgspec

from perfci.errors import DamagedFile
from perfci.record.codec import CodecError, from_plain, to_plain
from perfci.record.report import Report
from perfci.record.version import REPORT_SCHEMA
from perfci.report.report_checks import why_impossible

_FIRST = (
    "schema", "perfci_version", "created_at", "command", "base", "head", "environment",
    "verdict", "timing", "results", "failures",
)  # fmt: skip


def render_json(report: Report) -> str:
    """Return the report as JSON. CodecError on a number that isn't finite.

    What is read and written again has the same bytes: a whole number where the record says
    ``float`` (4 degrees of freedom) is written as one, ``4.0``, from the start.
    """
    plain = to_plain(from_plain(to_plain(report), Report))
    ordered = {name: plain.pop(name) for name in _FIRST} | plain
    encoded = msgspec.json.encode(encodable(ordered))
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def read_report(text: str, name: str = "the report") -> Report:
    """Return the report that ``text`` holds; DamagedFile, naming it, on anything else."""
    try:
        plain = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise _damaged(name, f"not JSON: {error}") from error
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if schema != REPORT_SCHEMA:
        found = f"its schema is {schema!r}" if schema else "it names no schema"
        raise DamagedFile(
            "other-report",
            f"{name} is no report this perfci can read: {found}",
            f"Name a file that --json of a perfci that writes {REPORT_SCHEMA} wrote.",
        )
    try:
        report = from_plain(plain, Report)
    except CodecError as error:
        raise _damaged(name, str(error)) from error
    if impossible := why_impossible(report):
        raise _damaged(name, impossible)
    return report


def _damaged(name: str, why: str) -> DamagedFile:
    return DamagedFile(
        "damaged-report", f"{name} can't be believed: {why}", "Write it again with --json."
    )


def encodable(plain: Any) -> Any:
    """Replace lone surrogates (an undecodable file name has them): UTF-8 can't hold them."""
    if isinstance(plain, str):
        return plain.encode("utf-8", "replace").decode()
    if isinstance(plain, dict):
        return {encodable(key): encodable(value) for key, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [encodable(value) for value in plain]
    return plain
