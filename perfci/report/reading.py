"""Reading of report files, which are untrusted: strictly decoded, within limits.

A report can't show whether its numbers are true. What they mean is decided again by
``verdict.acceptance.enforced``.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import msgspec

from perfci.errors import DamagedFile
from perfci.finding import Difference, Finding, Reason
from perfci.instruments import words as difference_words
from perfci.metrics import METRICS
from perfci.model.codec import CodecError
from perfci.model.report import Comparison, Report
from perfci.model.status import traits
from perfci.model.words import reason_words, words
from perfci.report.clean import clean_line
from perfci.report.exporters.json import (
    LARGEST_WHOLE,
    LIMITS,
    LONGEST_NAME,
    MOST_BYTES,
    Limit,
    fields_of,
)
from perfci.stats.t_tests import CONFIDENCE
from perfci.verdict.shards import parse_shard
from perfci.version import REPORT_SCHEMA

_FRONT = re.compile(r'\s*\{\s*"schema"\s*:\s*"([^"\\]{1,100})"')
"""The beginning of a file that names its schema first, as perfci writes it."""
_DERIVED_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "Report": {"schema": str},
    "Comparison": {"warnings": tuple[str, ...], "doubt": str, "cause": str, "replay": str},
    "Verdict": {"reasons": tuple[str, ...]},
    "Difference": {"text": str},
}
"""Fields of a file that aren't fields of the record: words and causes, which perfci derives from
the record, and the schema, which a file has to name."""

_LONGEST = 1e9
"""Most seconds (31 years) and rounds that are believed of a session. Merging adds such numbers."""
_LEAST_DF = 1.0 - 1e-9
"""Least degrees of freedom, but for rounding: two pairs have 1."""
_Coded = TypeVar("_Coded", Finding, Reason, Difference)


def read_report(text: str, name: str = "the report") -> Report:
    """Return the report that ``text`` holds. DamagedFile, with ``name`` in it, on anything else.

    The text may be untrusted. Types and limits of a report's fields are checked while decoding, and
    the first violation ends it.
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
        document: Any = msgspec.json.decode(text, type=shape_of(Report))
        _require_schema(document.schema, name)
        json.loads(text, object_pairs_hook=_require_unique_keys)
        report = msgspec.convert(document, Report, from_attributes=True)
    except (msgspec.ValidationError, CodecError) as error:
        raise _damaged(name, str(error)) from error
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise _damaged(name, f"not JSON: {error}") from error
    if impossible := next(_flaws(report), ""):
        raise _damaged(name, impossible)
    return report


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> None:
    """Raise CodecError on a repeated key, as readers differ in which of its values they take."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise CodecError(f"`{key[:100]}` stands twice in one object")
        seen.add(key)


def _require_schema(schema: Any, name: str) -> None:
    """Raise DamagedFile if ``schema`` isn't the one that this perfci writes."""
    if schema == REPORT_SCHEMA:
        return
    named = f"its schema is {str(schema)[:100]!r}" if schema else "it names no schema"
    raise DamagedFile(
        "other-schema",
        f"{name} is not a report that this perfci can read: {named}",
        f"Name a file that --json of a perfci that writes {REPORT_SCHEMA} wrote.",
    )


def _damaged(name: str, why: str) -> DamagedFile:
    reason = clean_line(why, 600)  # the reason quotes an untrusted file
    return DamagedFile(
        "damaged-file", f"{name} is not a valid report: {reason}", "Write it again with --json."
    )


@cache
def shape_of(kind: type) -> type[msgspec.Struct]:
    """Return the msgspec type that decodes JSON of the record ``kind`` within its limits."""
    limits = fields_of(kind)
    types: dict[str, tuple[Any, Any]] = {}
    for field in dataclasses.fields(kind):
        default = msgspec.NODEFAULT if field.default is dataclasses.MISSING else field.default
        if field.default_factory is not dataclasses.MISSING:
            default = msgspec.field(default_factory=field.default_factory)
        types[field.name] = (_type(*limits[field.name]), default)
    for name, hint in _DERIVED_FIELDS.get(kind.__name__, {}).items():
        made = _type(hint, LIMITS.get(f"{kind.__name__}.{name}", Limit()))
        types[name] = (Union[made, msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007 (made of values)
    return msgspec.defstruct(
        kind.__name__,
        [(name, *of) for name, of in types.items()],
        namespace={"__doc__": kind.__doc__},
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _type(hint: Any, limit: Limit) -> Any:
    """Return the msgspec type of a field with the annotation ``hint``, bounded by ``limit``."""
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


def _flaws(report: Report) -> Iterator[str]:
    """Yield what no writer of a report writes: unknown words, impossible numbers, double rows.

    Numbers that fit each other aren't checked. Code that forges one can forge all of them.
    """
    try:
        datetime.fromisoformat(report.created_at)
    except ValueError:
        yield f"created_at is {report.created_at!r}, no ISO 8601 date"
    yield from _unknown_codes(reason_words, report.verdict.findings)
    yield from _unknown_codes(words, report.findings)
    for why in report.why:
        yield from _unknown_codes(difference_words, why.differences)
    for name, text in (("shard", report.shard), *(("missing", shard) for shard in report.missing)):
        try:
            parse_shard(text or "1/1")
        except ValueError:
            yield f"{name} is {text!r}, not like 2/4"
    if report.missing and report.verdict.status == "pass":
        yield "the verdict is `pass`, and shards are missing"
    timing = report.timing
    spent = {"wall_s": timing.wall_s, "measured_s": timing.measured_s, "rounds": timing.rounds}
    for name, value in (*spent.items(), *report.durations.items()):
        if not 0 <= value <= _LONGEST:
            yield f"{name} took {value:g}, which no session takes"
    seen: set[tuple[str, str]] = set()
    for number, row in enumerate(report.results):
        where = f"results[{number}] ({row.case} {row.metric})"
        if (row.case, row.metric) in seen:
            yield f"{where} occurs twice"
        seen.add((row.case, row.metric))
        yield from (f"{where}: {flaw}" for flaw in _flaws_of_row(row))


def _unknown_codes(say: Callable[[_Coded], str], findings: Iterable[_Coded]) -> Iterator[str]:
    """Yield an error for each finding that ``say`` can't put into words."""
    for finding in findings:
        try:
            say(finding)
        except (KeyError, TypeError, ValueError, ArithmeticError):
            yield f"the finding {finding.code!r} isn't known, or has other arguments"


def _flaws_of_row(row: Comparison) -> Iterator[str]:
    yield from _unknown_codes(words, (*row.findings, *((row.caveat,) if row.caveat else ())))
    metric = METRICS.get(row.metric)
    known = (metric.unit, metric.direction) if metric else (row.unit, row.direction)
    if (row.unit, row.direction) != known or row.direction not in ("lower", "higher"):
        yield f"it is in {row.unit!r}, {row.direction!r} is better, and that isn't the metric's"
    for side in traits(row.status).lacks:
        if getattr(row, side) is not None:
            yield f"it is `{row.status}`, and {side} has numbers"
    if row.method == "none" and row.status in ("regressed", "improved", "unchanged"):
        yield f"it is `{row.status}`, and was not compared"
    yield from (f"{name} is not a number that a measurement gives" for name in _impossible(row))


def _impossible(row: Comparison) -> Iterator[str]:
    """Yield the row's fields whose numbers are impossible."""
    for name in ("p", "p_adjusted", "welch_p"):
        if not 0.0 <= (getattr(row, name) or 0.0) <= 1.0:
            yield name
    if not CONFIDENCE <= row.confidence < 1.0:
        yield "confidence"
    if row.df is not None and row.df < _LEAST_DF:
        yield "df"
    for name in ("threshold", "detectable", "base_sessions", "se"):
        if (getattr(row, name) or 0) < 0:
            yield name
    for name, side in (("base", row.base), ("head", row.head)):
        if side and min(side.workers, side.samples, *side.first_calls) < 0:
            yield name
