"""``perfci.report/1``, the report file: for programs, and for perfci to read again.

Scripts depend on the field names, so these stay. A report can come from a job that ran untrusted
code: reading refuses a file that exceeds ``LIMITS``, and writing cuts a report to fit. The file
also has derived fields, for people and for scripts that don't import perfci: ``warnings``,
``doubt`` and ``reasons`` (findings in English), ``cause`` and ``replay``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from itertools import islice
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from perfci.instruments import words as difference_words
from perfci.model.report import MOST_VALUES, Report
from perfci.model.status import Status, traits
from perfci.model.worker import MOST_FIRST_CALLS
from perfci.report.clean import Clean, clean_json
from perfci.report.replay import replay_of
from perfci.verdict.caveats import cause_of

HELP = "Write the report file here."
MOST_BYTES = 16 << 20
"""Largest size of a report file."""
LARGEST_WHOLE = (1 << 63) - 1
"""Largest whole number in a report: a signed 64-bit integer."""
LONGEST_NAME = 300

Keep = Literal["start", "end", "name"]
"""The part of a text that stays if the text is cut."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most characters of a text (``text``), and the most entries of a collection (``most``).

    ``keep`` is the part that stays if a text is cut. A cut ``name`` still differs from other names.
    """

    text: int = 300
    most: int = 1_000
    keep: Keep = "start"


_NAME = Limit(LONGEST_NAME, keep="name")
_METRIC = Limit(100, keep="name")
_PATH = Limit(4_096, keep="end")

LIMITS: Mapping[str, Limit] = MappingProxyType(
    {
        "Report.results": Limit(most=20_000),
        "Report.failures": Limit(most=1_000),
        "Report.explanations": Limit(most=1_000),
        "Report.notes": Limit(2_000, most=1_000),
        "Report.skipped": Limit(1_000, most=20_000),
        "Report.not_measured": Limit(1_000, most=1_000),
        "Report.durations": Limit(most=20_000),
        "Report.definitions": Limit(most=20_000),
        "Report.injected": Limit(most=20),
        "Verdict.reasons": Limit(5_000, most=1_000),
        "Reason.case": _NAME,
        "Reason.metric": _METRIC,
        "Reason.arguments": Limit(800, most=20),
        "Comparison.case": _NAME,
        "Comparison.metric": _METRIC,
        "Comparison.unit": Limit(50),
        "Comparison.warnings": Limit(1_000, most=50),
        "Comparison.doubt": Limit(1_000),
        "Comparison.replay": Limit(2_000),
        "Comparison.outliers": Limit(most=MOST_VALUES),
        "Estimate.values": Limit(most=MOST_VALUES),
        "Estimate.quantiles": Limit(most=9),
        "Estimate.first_calls": Limit(most=MOST_FIRST_CALLS),
        "Accepted.because": Limit(800),
        "Finding.arguments": Limit(800, most=20),
        "Failure.case": _NAME,
        "Failure.message": Limit(4_000),
        "Failure.log_tail": Limit(20_000, keep="end"),
        "Report.why": Limit(most=1_000),
        "Why.case": _NAME,
        "Why.differences": Limit(most=100),
        "Why.untold": Limit(1_000, most=50),
        "Difference.arguments": Limit(800, most=20),
        "Difference.text": Limit(4_000),
        "Difference.file": _PATH,
        "Explanation.case": _NAME,
        "Explanation.metric": _METRIC,
        "Explanation.text": Limit(4_000),
        "Explanation.file": _PATH,
        "Definition.benchmark": _NAME,
        "Definition.file": _PATH,
        "Side.python": _PATH,
        "Compiled.file": _PATH,
        "Environment.facts": Limit(1_000, most=200),
    }
)
"""Limits by ``Class.field``. Any other field, such as a new one, has ``Limit()``."""

_ROW_FIRST = ("case", "metric", "unit", "status", "gate", "method", "base", "head")
"""The fields that a comparison begins with, in order."""
_KEY = Limit(LONGEST_NAME, keep="name")
_SHORT = 300
"""A text is never cut below this many characters to make the whole file smaller."""
_RANKS: Mapping[str, int] = {status: traits(status).rank for status in get_args(Status)}


@cache
def fields_of(kind: type) -> Mapping[str, tuple[Any, Limit]]:
    """Return the type and the limit of each field of a record."""
    return {
        name: (hint, LIMITS.get(f"{kind.__name__}.{name}", Limit()))
        for name, hint in get_type_hints(kind).items()
    }


def render(report: Report) -> Clean:
    """Return the report as JSON that ``read_report`` takes. CodecError on a non-finite number.

    Reading the file and writing it again gives the same bytes: a whole number in a field of type
    ``float`` (4 degrees of freedom) is always written as ``4.0``. Anything beyond ``LIMITS`` is
    cut, with a note. If the file is too large only because of its indentation, it has none.
    """
    import msgspec

    from perfci.model.codec import to_plain

    # once through the record's types, so that whole numbers in float fields become floats
    plain = msgspec.to_builtins(msgspec.convert(to_plain(report), Report))
    try:
        msgspec.json.encode(plain)
    except UnicodeEncodeError:
        plain = encodable(plain)
    share = 1
    while True:
        fitted = fit(plain, share)
        _add_words(fitted, msgspec.convert(fitted, Report))
        ordered = {"schema": fitted.pop("schema"), **fitted}
        encoded = clean_json(msgspec.json.encode(ordered).decode()).encode()
        if len(encoded) < MOST_BYTES:
            break
        share *= 2
    indented = msgspec.json.format(encoded, indent=2)
    return clean_json((indented if len(indented) < MOST_BYTES else encoded).decode() + "\n")


def json_text(plain: Any, indent: int = 2) -> Clean:
    """Return ``plain`` as a JSON document, with lone surrogates in its texts spelled out."""
    import msgspec

    try:  # the hook is for numpy's numbers, which msgspec doesn't know
        encoded = msgspec.json.encode(plain, enc_hook=float)
    except UnicodeEncodeError:  # rare; making every text encodable at once would double the time
        encoded = msgspec.json.encode(encodable(plain), enc_hook=float)
    return clean_json(msgspec.json.format(encoded, indent=indent).decode() + "\n")


def encodable(plain: Any) -> Any:
    """Return ``plain`` with lone surrogates spelled out, which UTF-8 can't hold.

    An undecodable file name has lone surrogates.
    """
    if isinstance(plain, str):
        return plain.encode("utf-8", "backslashreplace").decode()
    if isinstance(plain, dict):
        return {encodable(key): encodable(value) for key, value in plain.items()}
    if isinstance(plain, (list, tuple)):
        return [encodable(value) for value in plain]
    return plain


def fit(plain: dict[str, Any], share: int = 1) -> dict[str, Any]:
    """Return a report's ``plain`` form cut to the limits, with a note of what was left out.

    ``share`` divides every limit except those of names. A larger share makes a smaller file.
    """
    left_out: Counter[str] = Counter()
    fitted: dict[str, Any] = _fitted(plain, Report, Limit(), share, "", left_out)
    if any(left_out.values()):
        counts = ", ".join(f"{count:,} of {name}" for name, count in left_out.items() if count)
        fitted["notes"] = [
            *fitted["notes"][: LIMITS["Report.notes"].most - 1],
            f"this file would be too large: left out are {counts}",
        ]
    return fitted


def shortened(text: str, limit: Limit, share: int = 1) -> str:
    """Return ``text`` if it is short enough, else the part that ``limit`` keeps, with ``…``.

    A cut name ends with a digest of the whole name, so that names that begin alike still differ.
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
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    if isinstance(plain, dict) and isinstance(hint, type) and is_dataclass(hint):
        fields = fields_of(hint)
        return {
            field: _fitted(value, *fields[field], share, field, left_out)
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
    return [_fitted(value, item, limit, share, name, left_out) for value in kept]


def _worthiest(items: list[Any] | tuple[Any, ...], most: int) -> list[Any]:
    """Return ``most`` items in their order: the first, but of comparisons the worst statuses."""
    if len(items) <= most:
        return list(items)
    ranked = sorted(range(len(items)), key=lambda index: _worth(items[index]))
    return [items[index] for index in sorted(ranked[:most])]


def _worth(item: Any) -> tuple[int, bool]:
    """Return what to sort by: comparisons by the rank of their status, those that gate first."""
    if not isinstance(item, dict):
        return (len(_RANKS), False)
    return (_RANKS.get(item.get("status", ""), len(_RANKS)), item.get("gate") != "fail")


def _add_words(plain: dict[str, Any], report: Report) -> None:
    """Add the derived fields to ``plain``, which is ``report``'s plain form."""
    plain["verdict"]["reasons"] = _cut("Verdict.reasons", report.verdict.reasons)
    again = {case: replay_of(report, case) for case in {row.case for row in report.results}}
    plain["results"] = [
        {
            **{name: fields[name] for name in _ROW_FIRST},
            **fields,
            "warnings": _cut("Comparison.warnings", row.warnings),
            "doubt": "".join(_cut("Comparison.doubt", [row.doubt])),
            "cause": cause_of(row),
            "replay": again[row.case],
        }
        for fields, row in zip(plain["results"], report.results, strict=True)
    ]
    for fields, why in zip(plain["why"], report.why, strict=True):
        for known, difference in zip(fields["differences"], why.differences, strict=True):
            (known["text"],) = _cut("Difference.text", [difference_words(difference)])


def _cut(field: str, texts: Iterable[str]) -> list[str]:
    return [shortened(text, LIMITS[field]) for text in texts]
