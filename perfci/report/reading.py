"""A report file read again: as untrusted input, within the limits, and believed only if it can be.

A file from before there were findings has English alone (``warnings``, ``doubt``, ``reasons``),
which is kept as findings in words.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from perfci.errors import DamagedFile
from perfci.model.codec import CodecError
from perfci.model.finding import IN_WORDS
from perfci.model.report import ModeMatrix, Report, ShapeTable
from perfci.report.checks import contradiction
from perfci.report.clean import clean_line
from perfci.report.limits import (
    LARGEST_WHOLE,
    LIMITS,
    LONGEST_NAME,
    MOST_BYTES,
    Limit,
    fields_of,
)
from perfci.verdict.policy import standard_error
from perfci.version import REPORT_SCHEMA

_FRONT = re.compile(r'\s*\{\s*"schema"\s*:\s*"([^"\\]{1,100})"')
_SCHEMA = re.compile(r"perfci\.report/(\d{1,9})")
_MADE: Mapping[str, Mapping[str, Any]] = {
    "Report": {"modes": tuple[ModeMatrix, ...], "shapes": tuple[ShapeTable, ...]},
    "Comparison": {"warnings": tuple[str, ...], "doubt": str, "cause": str, "replay": str},
    "Verdict": {"reasons": tuple[str, ...]},
    "Difference": {"text": str},
    "Hint": {"text": str},
}
"""Fields that a file has in addition to a record's, all made of those: words, causes, tables."""


def read_report(text: str, name: str = "the report") -> Report:
    """Return the report that ``text`` holds. DamagedFile, naming it, on anything else.

    The text may be untrusted. It is decoded by the types and the limits of a report, and refused
    at the first thing that breaks them.
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
        json.loads(text, object_pairs_hook=_require_unique_keys)
        report = _with_standard_errors(msgspec.convert(without_words(plain), Report))
    except (msgspec.ValidationError, CodecError) as error:
        raise _damaged(name, str(error)) from error
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _damaged(name, f"not JSON: {error}") from error
    if impossible := contradiction(report):
        raise _damaged(name, impossible)
    return report


def _with_standard_errors(report: Report) -> Report:
    """Return ``report``. Rows of an older file get the standard errors of their intervals."""
    rows = tuple(
        replace(row, se=own)
        if row.se is None and row.method != "exact" and (own := standard_error(row)) is not None
        else row
        for row in report.results
    )
    return replace(report, results=rows)


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> None:
    """Raise CodecError on a repeated key: of its values one reader takes one, another the other."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise CodecError(f"`{key[:100]}` stands twice in one object")
        seen.add(key)


def _require_schema(schema: Any, name: str) -> None:
    """Raise DamagedFile where ``schema`` is not the one that this perfci writes."""
    if schema == REPORT_SCHEMA:
        return
    named = f"its schema is {str(schema)[:100]!r}" if schema else "it names no schema"
    known, own = _SCHEMA.fullmatch(str(schema)), _SCHEMA.fullmatch(REPORT_SCHEMA)
    if known and own and int(known[1]) > int(own[1]):
        raise DamagedFile(
            "newer-report",
            f"{name} was written by a newer perfci: {named}",
            f"Read it with that perfci; this one reads {REPORT_SCHEMA}.",
        )
    raise DamagedFile(
        "other-report",
        f"{name} is no report this perfci can read: {named}",
        f"Name a file that --json of a perfci that writes {REPORT_SCHEMA} wrote.",
    )


def _damaged(name: str, why: str) -> DamagedFile:
    reason = clean_line(why, 600)  # it quotes an untrusted file
    return DamagedFile(
        "damaged-report", f"{name} can't be believed: {reason}", "Write it again with --json."
    )


@cache
def shape_of(kind: type) -> type[msgspec.Struct]:
    """Return the type that JSON of the record ``kind`` is decoded as: within the limits.

    A field with a default may be absent, and so may findings: an older file has words instead.
    """
    needed = {
        field.name
        for field in dataclasses.fields(kind)
        if field.default is field.default_factory is dataclasses.MISSING
        and field.name != "findings"
    }
    types = {name: _type(hint, limit) for name, (hint, limit) in fields_of(kind).items()}
    for name, hint in _MADE.get(kind.__name__, {}).items():
        types[name] = _type(hint, LIMITS.get(f"{kind.__name__}.{name}", Limit()))
    needed.add("reasons")
    return msgspec.defstruct(
        kind.__name__,
        [
            (name, of) if name in needed else (name, Union[of, msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007 (made of values)
            for name, of in types.items()
        ],
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _type(hint: Any, limit: Limit) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    bounds: dict[str, Any] = {}
    if origin is UnionType:
        hint = Union[tuple(_type(argument, limit) for argument in arguments)]  # noqa: UP007 (made of values)
    elif origin is tuple:
        hint = GenericAlias(tuple, (_type(arguments[0], limit), ...))
        bounds = {"max_length": limit.most}
    elif origin is Mapping:
        name = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
        hint = GenericAlias(dict, (name, _type(arguments[1], limit)))
        bounds = {"max_length": limit.most}
    elif hint is str:
        bounds = {"max_length": limit.text}
    elif hint is int:
        bounds = {"ge": -LARGEST_WHOLE, "le": LARGEST_WHOLE}
    elif dataclasses.is_dataclass(hint):
        hint = shape_of(hint)  # type: ignore[arg-type]
    return Annotated[hint, msgspec.Meta(**bounds)] if bounds else hint


def without_words(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's ``plain`` form without its words, where it has findings instead of them."""
    return {
        **_without("Report", plain),
        "results": [_row(row) for row in plain["results"]],
        "verdict": _verdict(plain["verdict"], plain["results"], plain["failures"]),
        "why": [_why(why) for why in plain.get("why", ())],
    }


def _without(kind: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name not in _MADE[kind]}


def _why(plain: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {"differences": "Difference", "hints": "Hint"}
    bare = {
        name: [_without(kind, finding) for finding in plain[name]]
        for name, kind in kinds.items()
        if name in plain
    }
    return {**plain, **bare}


def _row(plain: Mapping[str, Any]) -> dict[str, Any]:
    row = _without("Comparison", plain)
    if "findings" not in plain:
        row["findings"] = [_in_words(text) for text in plain.get("warnings", ())]
    if "caveat" not in plain and plain.get("doubt"):
        row["caveat"] = _in_words(plain["doubt"])
    return row


def _in_words(text: str) -> dict[str, Any]:
    return {"code": IN_WORDS, "arguments": {"text": text}}


def _verdict(
    plain: Mapping[str, Any],
    results: Iterable[Mapping[str, Any]],
    failures: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    verdict = _without("Verdict", plain)
    if "findings" not in plain:
        rows = {(row["case"], row["metric"]) for row in results}
        cases = {entry["case"] for entry in (*results, *failures)}
        verdict["findings"] = [
            {**_in_words(text), **_subject(text, cases, rows)} for text in plain["reasons"]
        ]
    return verdict


def _subject(text: str, cases: Container[str], rows: Container[tuple[str, str]]) -> dict[str, str]:
    """Return the case and metric that a reason begins with in a file that has no codes."""
    reason = text.removeprefix("warning: ")
    for colon in re.finditer(": ", reason):
        case, metric = reason[: colon.start()], reason[colon.end() :].split(" ", 1)[0]
        if case in cases:
            return {"case": case, "metric": metric if (case, metric) in rows else ""}
    return {}
