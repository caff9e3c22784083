"""The English in a report file: made of its findings, and kept where a file has nothing else.

``warnings`` and ``doubt`` stand beside ``findings`` and ``caveat`` for people to read. A file from
before there were findings has the words alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from perfci.model.codec import CodecError
from perfci.model.finding import Finding, in_words
from perfci.model.report import Comparison, Report
from perfci.model.words import words
from perfci.render.limits import LIMITS


class _RowWords(msgspec.Struct, frozen=True):
    warnings: tuple[str, ...] = ()
    doubt: str = ""


class _Words(msgspec.Struct, frozen=True):
    results: tuple[_RowWords, ...] = ()


def with_words(plain: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Return ``plain``, which is ``report``, with its words before its findings."""
    rows = [
        _before(
            row,
            findings={"warnings": _cut("Comparison.warnings", one.warnings)},
            caveat={"doubt": "".join(_cut("Comparison.doubt", [one.doubt]))},
        )
        for row, one in zip(plain["results"], report.results, strict=True)
    ]
    return {**plain, "results": rows}


def _before(plain: Mapping[str, Any], **added: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``plain`` with what is ``added`` before each of its fields."""
    whole: dict[str, Any] = {}
    for name, value in plain.items():
        whole |= {**added.get(name, {}), name: value}
    return whole


def _cut(field: str, texts: Iterable[str]) -> list[str]:
    longest = LIMITS[field].text
    return [text if len(text) <= longest else text[: longest - 1] + "…" for text in texts]


def without_words(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a report's ``plain`` form without its words, where it has findings instead of them.

    CodecError where the words are none.
    """
    try:
        written = msgspec.convert(plain, _Words, strict=True)
    except msgspec.ValidationError as error:
        raise CodecError(str(error)) from error
    whole = dict(plain)
    if "results" in plain:
        rows = zip(plain["results"], written.results, strict=True)
        whole["results"] = [_of_row(row, one) for row, one in rows]
    return whole


def _of_row(row: Mapping[str, Any], written: _RowWords) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if name not in {"warnings", "doubt"}}
    if "findings" not in row:
        found["findings"] = [_in_words(text) for text in written.warnings]
    if "caveat" not in row and written.doubt:
        found["caveat"] = _in_words(written.doubt)
    return found


def _in_words(text: str) -> dict[str, Any]:
    finding = in_words(text)
    return {"code": finding.code, "arguments": dict(finding.arguments)}


def why_unsayable(row: Comparison) -> str:
    """Return what is wrong with the findings of a row that may be a stranger's, or nothing."""
    findings = (*row.findings, *([row.caveat] if row.caveat else []))
    return next(filter(None, map(_why_unsayable, findings)), "")


def _why_unsayable(finding: Finding) -> str:
    try:
        words(finding)
    except KeyError:
        return f"the finding {finding.code!r} isn't known, or lacks an argument"
    except (TypeError, ValueError, ArithmeticError):
        return f"the finding {finding.code!r} has other arguments"
    return ""
