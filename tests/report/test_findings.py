"""Findings in a report file: codes next to their words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perfci.errors import DamagedFile
from perfci.finding import finding
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report
from tests.report.examples import EAGER, rich_report, row


def plain_report() -> dict[str, Any]:
    findings = (
        finding("round-on-one-side", which="4"),
        finding("more-rounds", change=0.14, rounds=40, threshold=0.05, setting="rounds"),
    )
    caveat = finding("few-rounds-changed")
    results = (
        row(
            EAGER,
            "latency_p50",
            1.0,
            1.02,
            "inconclusive",
            findings=findings,
            caveat=caveat,
        ),
        *rich_report().results[1:],
    )
    return json.loads(render_json(rich_report(results=results)))


def test_a_row_has_codes_and_arguments_beside_its_words() -> None:
    first = plain_report()["results"][0]
    assert first["findings"][1] == {
        "code": "more-rounds",
        "arguments": {"change": 0.14, "rounds": 40, "threshold": 0.05, "setting": "rounds"},
    }
    assert first["warnings"] == [
        "excluded, as only one side has a value: round 4",
        "a change of 14 % would have been detected; about 40 rounds would detect 5 %",
    ]
    assert first["caveat"] == {"code": "few-rounds-changed", "arguments": {}}
    assert first["doubt"] == "most rounds do not show the change"


@pytest.mark.parametrize(
    "finding",
    [
        {"code": "an-invention"},
        {"code": "more-rounds", "arguments": {"rounds": 3}},
        {"code": "below-threshold", "arguments": {"threshold": "5 %"}},
        {"code": "looks-regressed", "arguments": {"why": "looks-regressed"}},
        {"code": "below-floor", "arguments": {"floor": "{}"}},
        {"code": "in-words", "arguments": {"text": None}},
        {"code": "in-words", "arguments": {"text": ["a"]}},
        {"code": "in-words", "arguments": {"text": "x" * 1_000}},
        {"code": "no-spread", "words": "a regression"},
    ],
)
def test_a_strangers_finding_that_is_none_is_a_damaged_file(finding: dict[str, Any]) -> None:
    plain = plain_report()
    plain["results"][0]["findings"] = [finding]
    with pytest.raises(DamagedFile, match="is not a valid report"):
        read_report(json.dumps(plain))


@pytest.mark.parametrize(
    "reason",
    [
        {"code": "looks-regressed"},
        {"code": "regressed", "arguments": {"ratio": 2.0}},
        {
            "code": "incomplete",
            "arguments": {"missing": "1", "lacking": 1, "shards": 2, "case": "x"},
        },
        {"code": "nothing-measured", "arguments": {"case": "x"}},
        {"code": "undecided", "because": {"code": "undecided"}},
        {"code": "undecided", "arguments": {"ratio": 2.0, "lo": "a"}},
        {"code": "undecided", "metric": "x" * 200},
    ],
)
def test_a_strangers_reason_that_is_none_is_a_damaged_file(reason: dict[str, Any]) -> None:
    plain = plain_report()
    plain["verdict"]["findings"] = [reason]
    with pytest.raises(DamagedFile, match="is not a valid report"):
        read_report(json.dumps(plain))


def test_the_words_of_a_file_are_those_of_its_findings() -> None:
    plain = plain_report()
    plain["results"][0]["warnings"] = ["all is well"]
    assert read_report(json.dumps(plain)).results[0].warnings[0].startswith("excluded, as only")
    plain["results"][0]["warnings"] = [3]
    with pytest.raises(DamagedFile, match=r"results\[0\].warnings"):
        read_report(json.dumps(plain))


def test_what_was_found_of_a_session_has_a_code_beside_its_note() -> None:
    plain = json.loads(render_json(rich_report()))
    (note,) = plain["notes"]
    assert note.startswith("0.497 % of bursts were excluded (31 of 6,240)")
    (finding,) = plain["findings"]
    assert finding["arguments"] == {"excluded": 31, "bursts": 6240, "reason": "core taken"}
    before = {name: value for name, value in plain.items() if name != "findings"}
    assert read_report(json.dumps(before)).notes == read_report(json.dumps(plain)).notes == (note,)
    plain["findings"][0]["arguments"]["bursts"] = "many"
    with pytest.raises(DamagedFile, match="bursts-excluded"):
        read_report(json.dumps(plain))
