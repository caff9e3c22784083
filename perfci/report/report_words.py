"""The English in a report file: made of its findings, and kept where a file has nothing else.

``warnings``, ``doubt`` and ``reasons`` stand beside ``findings`` and ``caveat`` for people to read,
``cause`` and ``replay`` beside the status, ``modes`` and ``shapes`` beside the rows.
A file from before there were findings has the words alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

from perfci.instruments import words as inside
from perfci.model.codec import to_plain
from perfci.model.finding import IN_WORDS, Difference, Finding, Hint, Reason
from perfci.model.report import Comparison, Report, Verdict
from perfci.model.words import reason_words, words
from perfci.report.limits import LIMITS
from perfci.report.rows import replay_of
from perfci.verdict.caveats import cause_of
from perfci.verdict.modes import mode_matrices, shape_tables

_One = TypeVar("_One", Finding, Reason, Difference, Hint)


# Writing.


def with_words(plain: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Return ``plain``, which is ``report``, with its words before its findings."""
    same_code = frozenset(report.same_code)
    again = {case: replay_of(report, case) for case in {row.case for row in report.results}}
    rows = [
        _before(
            row,
            gate={"cause": cause_of(one, same_code), "replay": again[one.case]},
            findings={"warnings": _cut("Comparison.warnings", one.warnings)},
            caveat={"doubt": "".join(_cut("Comparison.doubt", [one.doubt]))},
        )
        for row, one in zip(plain["results"], report.results, strict=True)
    ]
    reasons = _cut("Verdict.reasons", report.verdict.reasons)
    verdict = _before(plain["verdict"], findings={"reasons": reasons})
    tables = {
        "modes": [to_plain(matrix) for matrix in mode_matrices(report.results)],
        "shapes": [to_plain(table) for table in shape_tables(report.results)],
    }
    why = [
        {
            **of_case,
            "differences": _said("Difference.text", of_case["differences"], one.differences),
            "hints": _said("Hint.text", of_case["hints"], one.hints),
        }
        for of_case, one in zip(plain["why"], report.why, strict=True)
    ]
    return {**plain, "verdict": verdict, "results": rows, **tables, "why": why}


def _said(
    field: str, plain: Iterable[Mapping[str, Any]], found: Iterable[Difference | Hint]
) -> list[dict[str, Any]]:
    return [
        _before(one, arguments={"text": "".join(_cut(field, [inside(each)]))})
        for one, each in zip(plain, found, strict=True)
    ]


def _before(plain: Mapping[str, Any], **added: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``plain`` with what is ``added`` before each of its fields."""
    whole: dict[str, Any] = {}
    for name, value in plain.items():
        whole |= {**added.get(name, {}), name: value}
    return whole


def _cut(field: str, texts: Iterable[str]) -> list[str]:
    longest = LIMITS[field].text
    return [text if len(text) <= longest else text[: longest - 1] + "…" for text in texts]


# Reading.


def without_words(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report's ``plain`` form without its words, where it has findings instead of them."""
    verdict = _verdict(plain["verdict"], plain["results"], plain["failures"])
    rows = [_row(row) for row in plain["results"]]
    kept = {name: value for name, value in plain.items() if name not in {"modes", "shapes"}}
    why = [
        {
            **of_case,
            **{
                name: [{k: v for k, v in one.items() if k != "text"} for one in of_case[name]]
                for name in ("differences", "hints")
                if name in of_case
            },
        }
        for of_case in plain.get("why", ())
    ]
    return {**kept, "results": rows, "verdict": verdict, "why": why}


_MADE = frozenset({"warnings", "doubt", "cause", "replay"})


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if name not in _MADE}
    if "findings" not in row:
        found["findings"] = [_in_words(text) for text in row.get("warnings", ())]
    if "caveat" not in row and row.get("doubt"):
        found["caveat"] = _in_words(row["doubt"])
    return found


def _in_words(text: str) -> dict[str, Any]:
    return {"code": IN_WORDS, "arguments": {"text": text}}


def _verdict(
    plain: Mapping[str, Any],
    results: Iterable[Mapping[str, Any]],
    failures: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    found = {name: value for name, value in plain.items() if name != "reasons"}
    if "findings" not in plain:
        rows = {(one["case"], one["metric"]) for one in results}
        cases = {one["case"] for one in (*results, *failures)}
        found["findings"] = [
            {**_in_words(text), **_about(text, cases, rows)} for text in plain["reasons"]
        ]
    return found


def _about(text: str, cases: Container[str], rows: Container[tuple[str, str]]) -> dict[str, str]:
    """Return the case and metric that a reason begins with in a file that has no codes."""
    said = text.removeprefix("warning: ")
    for found in re.finditer(": ", said):
        case, metric = said[: found.start()], said[found.end() :].split(" ", 1)[0]
        if case in cases:
            return {"case": case, "metric": metric if (case, metric) in rows else ""}
    return {}


# Believing.


def why_unsayable(findings: Comparison | Verdict | Report) -> str:
    """Return what is wrong with the findings of what may be a stranger's, or nothing."""
    if isinstance(findings, Verdict):
        return _first(reason_words, findings.findings)
    caveat = (findings.caveat,) if isinstance(findings, Comparison) and findings.caveat else ()
    return _first(words, (*findings.findings, *caveat))


def why_untellable(report: Report) -> str:
    """Return what is wrong with the whys of what may be a stranger's, or nothing."""
    differences = (one for why in report.why for one in why.differences)
    return _first(inside, differences) or _first(
        inside, (one for why in report.why for one in why.hints)
    )


def _first(say: Callable[[_One], str], findings: Iterable[_One]) -> str:
    for finding in findings:
        try:
            say(finding)
        except KeyError:
            return f"the finding {finding.code!r} isn't known, or lacks an argument"
        except (TypeError, ValueError, ArithmeticError):
            return f"the finding {finding.code!r} has other arguments"
    return ""
