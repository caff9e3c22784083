"""The report file, ``perfci.report/1``: scripts read its field names, so they stay."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from perfci.errors import DamagedFile
from perfci.record.codec import CodecError, from_plain, to_plain
from perfci.record.report import Report
from perfci.record.version import REPORT_SCHEMA
from perfci.report.clean import Clean, clean_json, clean_line
from perfci.report.fitting import fit
from perfci.report.limits import MOST_BYTES, shape_of
from perfci.report.report_checks import why_impossible
from perfci.report.scanning import check_amounts

_FIRST = (
    "schema", "perfci_version", "created_at", "command", "base", "head", "environment",
    "verdict", "timing", "results", "failures",
)  # fmt: skip
_FRONT = re.compile(r'\s*\{\s*"schema"\s*:\s*"([^"\\]{1,100})"')
_SCHEMA = re.compile(r"perfci\.report/(\d{1,9})")


def render_json(report: Report) -> Clean:
    """Return the report as JSON that ``read_report`` takes. CodecError on a number not finite.

    What is read and written again has the same bytes: a whole number where the record says
    ``float`` (4 degrees of freedom) is written as one, ``4.0``, from the start. What goes beyond
    ``limits`` is cut, and a note says so; indentation goes first.
    """
    plain = encodable(to_plain(from_plain(to_plain(report), Report)))
    share = 1
    while True:
        fitted = fit(plain, shape_of(Report), share)
        ordered = {name: fitted.pop(name) for name in _FIRST} | fitted
        encoded = clean_json(msgspec.json.encode(ordered).decode()).encode()
        if len(encoded) < MOST_BYTES:
            break
        share *= 2
    indented = msgspec.json.format(encoded, indent=2)
    return clean_json((indented if len(indented) < MOST_BYTES else encoded).decode() + "\n")


def read_report(text: str, name: str = "the report") -> Report:
    """Return the report that ``text`` holds; DamagedFile, naming it, on anything else.

    The text may be a stranger's: amounts are checked before anything is built of it.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise _damaged(name, f"it is larger than {MOST_BYTES >> 20} MiB")
    if text.startswith("\ufeff"):
        raise _damaged(name, "it begins with a byte order mark, so something else has written it")
    front = _FRONT.match(text)
    if front is not None:
        _require_schema(front[1], name)
    elif text.strip() and not text.lstrip().startswith("{"):
        _require_schema(None, name)
    try:
        check_amounts(text, shape_of(Report))
        plain = msgspec.json.decode(text)
        _require_schema(plain.get("schema"), name)
        report = from_plain(plain, Report)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _damaged(name, f"not JSON: {error}") from error
    except CodecError as error:
        raise _damaged(name, str(error)) from error
    if impossible := why_impossible(report):
        raise _damaged(name, impossible)
    return report


def _require_schema(schema: Any, name: str) -> None:
    """Raise DamagedFile where ``schema`` is another than this perfci writes."""
    if schema == REPORT_SCHEMA:
        return
    found = f"its schema is {str(schema)[:100]!r}" if schema else "it names no schema"
    known, own = _SCHEMA.fullmatch(str(schema)), _SCHEMA.fullmatch(REPORT_SCHEMA)
    if known and own and int(known[1]) > int(own[1]):
        raise DamagedFile(
            "newer-report",
            f"{name} was written by a newer perfci: {found}",
            f"Read it with that perfci; this one reads {REPORT_SCHEMA}.",
        )
    raise DamagedFile(
        "other-report",
        f"{name} is no report this perfci can read: {found}",
        f"Name a file that --json of a perfci that writes {REPORT_SCHEMA} wrote.",
    )


def _damaged(name: str, why: str) -> DamagedFile:
    # what is wrong with a stranger's file is told in the stranger's words
    said = clean_line(why, 600)
    return DamagedFile(
        "damaged-report", f"{name} can't be believed: {said}", "Write it again with --json."
    )


def encodable(plain: Any) -> Any:
    """Spell out lone surrogates (an undecodable file name has them): UTF-8 can't hold them."""
    if isinstance(plain, str):
        return plain.encode("utf-8", "backslashreplace").decode()
    if isinstance(plain, dict):
        return {encodable(key): encodable(value) for key, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [encodable(value) for value in plain]
    return plain
