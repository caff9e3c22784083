"""The report file, ``perfci.report/1``: scripts read its field names, so they stay."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from itertools import islice
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import msgspec

from perfci.errors import DamagedFile
from perfci.model.codec import CodecError, from_plain, to_plain
from perfci.model.report import Report
from perfci.model.status import Status, traits
from perfci.report.checks import why_impossible
from perfci.report.clean import Clean, clean_json, clean_line
from perfci.report.limits import (
    LARGEST_WHOLE,
    LIMITS,
    LONGEST_NAME,
    MOST_BYTES,
    Limit,
    fields_of,
    shape_of,
)
from perfci.report.report_words import with_words, without_words
from perfci.verdict.decision import build_report, opened
from perfci.verdict.policy import standard_error
from perfci.version import REPORT_SCHEMA

# A report cut to the table of limits, so that perfci reads whatever perfci wrote.

_KEY = Limit(LONGEST_NAME, keep="name")
_SHORT = 300
"""Names and all else that is short is never cut for the sake of the file's size."""
_WORTH: Mapping[str, int] = {status: traits(status).rank for status in get_args(Status)}


def fit(plain: dict[str, Any], share: int = 1) -> dict[str, Any]:
    """Return a report's ``plain`` form cut to the limits; a note says what was left out.

    ``share`` divides every limit but those of names: the whole file has one, too.
    """
    left_out: Counter[str] = Counter()
    fitted: dict[str, Any] = _fitted(plain, Report, Limit(), share, "", left_out)
    if left_out["results"] or left_out["failures"]:
        left_out["results"] += _leave_out_what_has_no_failure(fitted)
        _leave_out_what_has_no_row(fitted)
    if any(left_out.values()):
        said = ", ".join(f"{count:,} of {name}" for name, count in left_out.items() if count)
        most = LIMITS["Report.notes"].most
        fitted["notes"] = [
            *fitted["notes"][: most - 1],
            f"this file would be too large: left out are {said}",
        ]
    return fitted


def _leave_out_what_has_no_failure(fitted: dict[str, Any]) -> int:
    """Return how many ``failed`` rows go with their failures, for the same reason."""
    failed = {one["case"] for one in fitted["failures"]}
    rows = fitted["results"]
    fitted["results"] = [one for one in rows if one["status"] != "failed" or one["case"] in failed]
    return len(rows) - len(fitted["results"])


def _leave_out_what_has_no_row(fitted: dict[str, Any]) -> None:
    """What else is known of a case goes with its rows: a reader takes it for a damaged report."""
    shown = {one["case"] for one in (*fitted["results"], *fitted["failures"])}
    benchmarks = {case.partition("[")[0] for case in shown}
    fitted["why"] = [one for one in fitted["why"] if one["case"] in shown]
    fitted["same_code"] = [case for case in fitted["same_code"] if case in shown]
    fitted["definitions"] = [one for one in fitted["definitions"] if one["benchmark"] in benchmarks]
    for holder, name in (
        (fitted, "durations"),
        *((side, "cases") for side in (fitted["ran"] or {}).values() if side),
    ):
        holder[name] = {case: one for case, one in holder[name].items() if case in shown}


def shortened(text: str, limit: Limit, share: int = 1) -> str:
    """Return ``text`` if it is short enough, else its part that ``limit`` keeps, with a mark.

    A name ends with a digest of the whole, so that two that begin alike stay two.
    """
    longest = max(min(limit.text, _SHORT), limit.text // share)
    if len(text) <= longest:
        return text
    match limit.keep:
        case "end":
            return "…" + text[1 - longest :]
        case "name":
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            return f"{text[: longest - 9]}…{digest}"
        case "start":
            return text[: longest - 1] + "…"


def _fitted(
    plain: Any, hint: Any, limit: Limit, share: int, name: str, left_out: Counter[str]
) -> Any:
    if isinstance(plain, str):
        return shortened(plain, limit, share)
    if isinstance(plain, int) and not isinstance(plain, bool):
        return max(-LARGEST_WHOLE, min(LARGEST_WHOLE, plain))
    if not isinstance(plain, (list, tuple, dict)):
        return plain
    if get_origin(hint) is UnionType:
        hint = next(one for one in get_args(hint) if one is not NoneType)
    if isinstance(plain, dict) and isinstance(hint, type) and is_dataclass(hint):
        of = fields_of(hint)
        return {
            field: _fitted(value, *of[field], share, field, left_out)
            for field, value in plain.items()
        }
    most = max(1, limit.most // share)
    item = get_args(hint)[-1 if isinstance(plain, dict) else 0]
    if isinstance(plain, dict):
        left_out[name] += max(0, len(plain) - most)
        return {
            shortened(key, _KEY): _fitted(value, item, limit, share, name, left_out)
            for key, value in islice(plain.items(), most)
        }
    kept = _worthiest(plain, most)
    left_out[name] += len(plain) - len(kept)
    return [_fitted(one, item, limit, share, name, left_out) for one in kept]


def _worthiest(items: list[Any] | tuple[Any, ...], most: int) -> list[Any]:
    """Return the first ``most``; of comparisons those that moved, in the order they had."""
    if len(items) <= most:
        return list(items)
    ranked = sorted(range(len(items)), key=lambda index: _worth(items[index]))
    return [items[index] for index in sorted(ranked[:most])]


def _worth(item: Any) -> tuple[int, bool]:
    if not isinstance(item, dict):
        return (len(_WORTH), False)
    return (_WORTH.get(item.get("status", ""), len(_WORTH)), item.get("gate") != "fail")


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
        fitted = fit(plain, share)
        fitted = with_words(fitted, from_plain(fitted, Report))
        ordered = {name: fitted.pop(name) for name in _FIRST} | fitted
        encoded = clean_json(msgspec.json.encode(ordered).decode()).encode()
        if len(encoded) < MOST_BYTES:
            break
        share *= 2
    indented = msgspec.json.format(encoded, indent=2)
    return clean_json((indented if len(indented) < MOST_BYTES else encoded).decode() + "\n")


def read_report(text: str, name: str = "the report") -> Report:
    """Return the report that ``text`` holds; DamagedFile, naming it, on anything else.

    The text may be a stranger's: it is decoded by what a report may be, within the limits, and
    refused at the first thing that isn't.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > MOST_BYTES:
        raise _damaged(name, f"it is larger than {MOST_BYTES >> 20} MiB")
    if text.startswith("\ufeff"):
        raise _damaged(name, "it begins with a byte order mark, so something else has written it")
    front = _FRONT.match(text)
    if front is not None:
        _require_schema(front[1], name)
    elif text.strip() and (not text.lstrip().startswith("{") or '"schema"' not in text):
        _require_schema(None, name)
    try:
        plain = msgspec.to_builtins(msgspec.json.decode(text, type=shape_of(Report)))
        _require_schema(plain.get("schema"), name)
        json.loads(text, object_pairs_hook=_once)
        report = _with_standard_errors(msgspec.convert(without_words(plain), Report))
    except (msgspec.ValidationError, CodecError) as error:
        raise _damaged(name, str(error)) from error
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _damaged(name, f"not JSON: {error}") from error
    if impossible := why_impossible(report):
        raise _damaged(name, impossible)
    return report


def _with_standard_errors(report: Report) -> Report:
    """Return ``report``; rows of an older file get the standard errors of their intervals."""
    rows = tuple(
        replace(row, se=own)
        if row.se is None and row.method != "exact" and (own := standard_error(row)) is not None
        else row
        for row in report.results
    )
    measured, decided = opened(report)
    return build_report(measured, replace(decided, judged=replace(decided.judged, rows=rows)))


def _once(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a key that an object has twice: of the two readers take one or the other."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise CodecError(f"`{key[:100]}` stands twice in one object")
        seen.add(key)


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
    # what is wrong with an untrusted file is quoted from it
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
