"""A report file from a stranger: what no measurement gives is refused before it is built."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from perfci.errors import EXIT_OUTSIDE, DamagedFile
from perfci.model.report import Report
from perfci.report.exporters.json import MOST_BYTES
from perfci.report.exporters.json import render as render_json
from perfci.report.reading import read_report, shape_of
from tests.builders.project import Project
from tests.report.examples import FORMS, rendered, rich_report

TEXT = render_json(rich_report())
Step = str | int

TEXTS: dict[tuple[Step, ...], int] = {
    ("results", 0, "case"): 300,
    ("results", 0, "metric"): 100,
    ("results", 0, "unit"): 50,
    ("results", 0, "warnings", 0): 1_000,
    ("failures", 0, "case"): 300,
    ("failures", 0, "kind"): 300,
    ("failures", 0, "message"): 4_000,
    ("failures", 0, "log_tail"): 20_000,
    ("explanations", 0, "text"): 4_000,
    ("explanations", 0, "file"): 4_096,
    ("verdict", "reasons", 0): 5_000,
    ("notes", 0): 2_000,
    ("environment", "facts", "cpu"): 1_000,
    ("head", "rev"): 300,
    ("head", "python"): 4_096,
}
LISTS: dict[tuple[Step, ...], int] = {
    ("failures",): 1_000,
    ("explanations",): 1_000,
    ("notes",): 1_000,
    ("verdict", "reasons"): 1_000,
    ("results", 0, "warnings"): 50,
}


def edited(path: tuple[Step, ...], value: Any) -> str:
    plain = json.loads(TEXT)
    plain["results"][0]["warnings"] = ["a warning"]
    inside = plain
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return json.dumps(plain)


def refused(text: str, said: str) -> DamagedFile:
    with pytest.raises(DamagedFile, match=said) as caught:
        read_report(text, "theirs.json")
    assert "theirs.json" in caught.value.message
    assert caught.value.exit_code == EXIT_OUTSIDE
    return caught.value


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_a_text_is_read_up_to_its_limit_and_not_beyond(path: tuple[Step, ...]) -> None:
    most = TEXTS[path]
    plain = json.loads(edited(path, '"' * most))
    if path[-1] == "unit":  # perfci's own metrics have units that are known
        plain["results"][0]["metric"] = "own"
    if path == ("failures", 0, "case"):  # nobody else's row is of that failure
        plain["results"] = [one for one in plain["results"] if one["status"] != "failed"]
    read_report(json.dumps(plain))  # its JSON is twice as long: what it says counts
    refused(edited(path, "x" * (most + 1)), f"`str` of length <= {most} - at `\\$")


@pytest.mark.parametrize("path", LISTS, ids=str)
def test_a_list_is_read_up_to_its_limit_and_not_beyond(path: tuple[Step, ...]) -> None:
    most = LISTS[path]
    item = json.loads(TEXT)[path[0]][0] if path[0] in {"failures", "explanations"} else "x"
    read_report(edited(path, [item] * most))
    refused(edited(path, [item] * (most + 1)), f"`array` of length <= {most} - at `\\$")


@pytest.mark.parametrize(
    ("path", "most"), [(("environment", "facts"), 200), (("skipped",), 20_000)], ids=str
)
def test_a_mapping_is_read_up_to_its_limit_and_not_beyond(
    path: tuple[Step, ...], most: int
) -> None:
    names = {f"name {number}": "x" for number in range(most)}
    read_report(edited(path, names))
    refused(edited(path, {**names, "more": "x"}), f"`object` of length <= {most} - at `\\$")
    refused(edited(path, {"x" * 301: "x"}), "`str` of length <= 300 - at `.*")


@pytest.mark.parametrize(
    ("text", "said", "times"),
    [
        ('"results": [' + "{}," * 1_000_000 + "rubbish", r"at `\$\.results\[0\]`", 0.25),
        ('"notes": [' + '"",' * 200_000 + '""', "`array` of length <= 1000", 4),
        (
            '"skipped": {' + ", ".join(f'"{number}": ""' for number in range(100_000)) + "}, ",
            "`object` of length <= 20000",
            16,
        ),
    ],
    ids=["results", "notes", "names"],
)
def test_what_is_too_much_takes_little_memory_until_it_is_refused(
    text: str, said: str, times: float
) -> None:
    whole = '{"schema": "perfci.report/1", ' + text + ("]}" if text.endswith('""') else '"x": 1}')
    tracemalloc.start()
    try:
        refused(whole, said)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(whole) * times


def _instead(old: str, new: str) -> str:
    assert TEXT.count(old) == 1
    return TEXT.replace(old, new)


ROUNDS = '"rounds": 42'
WALL = f'"wall_s": {json.loads(TEXT)["timing"]["wall_s"]}'
DIRTY = '"dirty": true'
BOMBS: dict[str, tuple[Callable[[], str], str]] = {
    "too large": (lambda: TEXT + " " * MOST_BYTES, "larger than 16 MiB"),
    "too large in bytes": (lambda: '{"' + "é" * (MOST_BYTES // 2), "larger than 16 MiB"),
    "long number": (
        lambda: _instead(ROUNDS, f'"rounds": {"9" * 5000}'),
        "Integer value out",
    ),
    "whole number": (
        lambda: _instead(ROUNDS, f'"rounds": {1 << 63}'),
        "`int` <= 92233720",
    ),
    "infinite": (lambda: _instead(ROUNDS, '"rounds": 1e999'), "Number out of range - at `.*rounds"),
    "minus infinite": (lambda: _instead(ROUNDS, '"rounds": -1e999'), "Number out of range"),
    "no number": (lambda: _instead(WALL, '"wall_s": 1.2.3'), "not JSON"),
    "a fraction": (lambda: _instead(ROUNDS, '"rounds": 1.2'), "Expected `int`, got `float`"),
    "huge argument": (
        lambda: edited(("verdict", "findings", 0, "arguments"), {"n": 1 << 63}),
        "at `.*arguments",
    ),
    "nested argument": (
        lambda: edited(("verdict", "findings", 0, "arguments"), {"n": [[]]}),
        "got `array` - at `.*arguments",
    ),
    "NaN": (lambda: _instead(ROUNDS, '"rounds": NaN'), "not JSON"),
    "key twice": (lambda: _instead(DIRTY, f"{DIRTY}, {DIRTY}"), "`dirty` stands twice"),
    "key spelled twice": (
        lambda: _instead(DIRTY, f'{DIRTY}, "d\\u0069rty": false'),
        "`dirty` stands twice",
    ),
    "fact twice": (
        lambda: _instead('"threads": "4"', '"threads": "4", "threads": "64"'),
        "`threads` stands twice",
    ),
    "many unknown keys": (
        lambda: _instead(ROUNDS, ROUNDS + "".join(f', "k{n}": 1' for n in range(200))),
        "unknown field `k0`",
    ),
    "nested lists": (lambda: edited(("notes",), [[[[]]]]), "got `array` - at `"),
    "nesting bomb": (
        lambda: '{"schema": "perfci.report/1", "notes": ' + "[" * 1_000_000,
        "got `array` - at `",
    ),
    "no reasons": (lambda: edited(("verdict",), {"status": "fail"}), "missing .*`findings`"),
    "unknown object": (lambda: edited(("more",), {"a": 1}), "unknown field `more`"),
    "list for an object": (lambda: edited(("timing",), []), "got `array` - at `"),
    "object for a list": (lambda: edited(("results",), {}), "got `object` - at `"),
    "cut off": (lambda: TEXT[: len(TEXT) // 2], "truncated"),
    "cut off at the end": (lambda: TEXT.rstrip()[:-1], "truncated"),
    "more follows": (lambda: TEXT + "{}", "trailing characters"),
    "closed twice": (lambda: TEXT + "}", "not JSON"),
    "bad escape": (lambda: _instead('"system"', '"sys\\tem\\q"'), "not JSON"),
    "raw control character": (lambda: _instead('"system"', '"sys\x07tem"'), "not JSON"),
    "comma too many": (lambda: _instead(ROUNDS, f"{ROUNDS},"), "not JSON"),
    "comma too few": (lambda: _instead(f"{ROUNDS}\n", f"{ROUNDS} 4\n"), "not JSON"),
    "key in a list": (lambda: edited(("notes",), ["x"]).replace('["x"]', '["x": 1]'), "not JSON"),
}


@pytest.mark.parametrize("how", BOMBS)
def test_what_would_break_or_mislead_a_reader_is_refused(how: str) -> None:
    make, said = BOMBS[how]
    refused(make(), said)


def test_a_report_of_another_schema_is_called_that() -> None:
    newer = TEXT.replace("perfci.report/1", "perfci.report/2").replace('"notes"', '"remarks"')
    assert "not a report that this perfci can read" in refused(newer, "perfci.report/2").message
    plain = json.loads(TEXT)
    last = json.dumps({**{k: v for k, v in plain.items() if k != "schema"}, "schema": "other/7"})
    assert "not a report that this perfci can read" in refused(last, "other/7").message


def test_what_is_said_of_a_strangers_file_holds_no_escape_sequence() -> None:
    name = "\x1b[31mred\x1b[0m\u202e"
    plain = json.loads(TEXT)
    plain["results"][0] |= {"case": name, "p": 2}
    error = refused(json.dumps(plain), "p is not a number")
    assert "(red latency_p50)" in error.message
    assert "\x1b" not in refused(edited((name,), {}), "unknown field").message


@pytest.mark.parametrize("number", [0.0, 1e-300, 1e308, -1e308, 9e18])
@pytest.mark.parametrize("form", FORMS)
def test_no_finite_number_breaks_a_format(number: float, form: str) -> None:
    plain = json.loads(TEXT)
    for one in plain["results"]:
        fields = ("ratio", "ratio_lo", "ratio_hi", "difference", "difference_lo", "difference_hi")
        one |= {name: abs(number) for name in fields if one.get(name) is not None}
        one |= {"threshold": abs(number), "detectable": abs(number), "cohens_d": number}
    spent = min(abs(number), 1e9)
    plain["timing"] |= {"wall_s": spent, "measured_s": spent}
    assert rendered(_unchecked(plain), form)


def _unchecked(plain: dict[str, Any]) -> Report:
    document = msgspec.convert(plain, shape_of(Report))
    return msgspec.convert(document, Report, from_attributes=True)


def test_a_refused_report_gives_exit_code_4_and_not_a_byte_of_it(project: Project) -> None:
    project.write("twice.json", _instead(DIRTY, f"{DIRTY}, {DIRTY}"))
    project.write("large.json", "")
    os.truncate(project.folder / "large.json", MOST_BYTES + 1)
    for name, said in (("twice.json", "twice"), ("large.json", "16 MiB")):
        for form in ("terminal", "markdown", "junit"):
            done = project.perfci("report", name, "--format", form).without_traceback()
            assert (done.code, done.out) == (EXIT_OUTSIDE, "")
            assert name in done.err
            assert said in done.err
