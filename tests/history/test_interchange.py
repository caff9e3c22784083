"""An export is read back as what was exported, or refused with the line that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfci.errors import DamagedFile, PerfciError, UsageError
from perfci.history.interchange import from_lines, to_lines
from perfci.history.store import open_history
from perfci.model.run import Environment, Point, RecordedRun
from tests.builders.recorded import HERE, THERE, change, in_order, recorded

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.lists(
    st.builds(
        Point,
        case=TEXT,
        metric=TEXT,
        unit=TEXT,
        value=NUMBER,
        direction=st.sampled_from(("lower", "higher")),
    ),
    max_size=3,
    unique_by=lambda point: (point.case, point.metric),
)
MAPPING = st.dictionaries(TEXT, TEXT, max_size=3)
RUNS = st.builds(
    RecordedRun,
    **dict.fromkeys(("id", "source", "sha", "subject", "branch", "committed_at"), TEXT),
    measured_at=TEXT,
    position=st.none() | st.integers(0, 2**31 - 1),
    environment=st.builds(Environment, key=TEXT, facts=MAPPING),
    runner=TEXT,
    points=POINTS.map(tuple),
    source_hashes=MAPPING,
    failed=MAPPING,
)


@settings(max_examples=40)
@given(st.lists(RUNS, max_size=3))
def test_any_run_comes_back_from_its_line(runs: list[RecordedRun]) -> None:
    lines = list(to_lines(runs))
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    assert list(from_lines(lines, "x")) == [in_order(run) for run in runs]


def test_a_whole_history_goes_to_another_database_and_comes_back_the_same(place, tmp_path) -> None:
    with open_history(place) as history:
        history.record([recorded(1), recorded(2, THERE), recorded(3, position=None)])
        history.remember([change()])
        history.acknowledge(change().id, "Meant.")
        exported = list(to_lines(history.export()))
    from perfci.history.interchange import add_records

    with open_history(str(tmp_path / "other.sqlite")) as other:
        said = add_records(other, from_lines(exported, "x"))
        assert said.summary == "3 new runs"
        assert list(to_lines(other.export())) == exported
        again = add_records(other, from_lines(exported, "x"))
        assert again.summary == "0 new runs, 3 were there already"
        assert list(to_lines(other.export())) == exported


def test_the_same_history_gives_the_same_text_in_whatever_order_it_was_recorded(tmp_path) -> None:
    texts = []
    for name, runs in (("a", (1, 2, 3)), ("b", (3, 1, 2))):
        with open_history(str(tmp_path / name)) as history:
            history.record([recorded(number) for number in runs])
            texts.append(b"".join(to_lines(history.export())))
    assert texts[0] == texts[1]


def lines() -> list[bytes]:
    return list(to_lines([recorded(1), recorded(2)]))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "line 0: it ends before its end"),
        (lines()[:2], "line 2: it ends before its end"),
        (lines()[:-1], "line 3: it ends before its end"),
        ([*lines()[:2], lines()[2][:100]], "line 3"),
        ([lines()[0], lines()[1], lines()[3]], "2 records were written, 1 are here"),
        (lines()[1:], "line 1: the header is not the first line"),
        ([lines()[0], *lines()], "line 2: the header is not the first line"),
        (
            [*lines(), lines()[1]],
            "line 5: the header is not the first line, or the end not",
        ),
        ([lines()[0], lines()[1].replace(b'"source"', b'"sauce"')], "line 2"),
        ([lines()[0], lines()[1].replace(b'"lower"', b'"sideways"')], "line 2"),
        ([lines()[0], lines()[1].replace(b'"lab-1"', b"7")], "line 2"),
        ([lines()[0], lines()[1].replace(b"0.001,", b"NaN,", 1)], "line 2"),
        ([b"\xff\xfe\n"], "line 1"),
        ([lines()[0], lines()[1].replace(b'"lab-1"', b'"\xff"')], "line 2"),
    ],
)
def test_a_damaged_export_is_refused_with_its_line(content: list[bytes], said: str) -> None:
    with pytest.raises(DamagedFile, match=r"mine\.jsonl is damaged") as caught:
        list(from_lines(content, "mine.jsonl"))
    assert said in caught.value.message


def test_a_newer_export_is_refused_as_one() -> None:
    newer = [json.dumps({"type": "perfci.history/2"}, separators=(",", ":")).encode()]
    with pytest.raises(UsageError, match="newer perfci"):
        list(from_lines(newer, "x"))


ODD_LINES = {
    "line 45: .* it was cut short": lambda _: b"",
    "can't decode byte 0xff": lambda line: line.replace(b'"lab-1"', b'"lab-\xff"'),
    "its position on the branch is 9223372036854775808": lambda line: line.replace(
        b'"position":44', b'"position":9223372036854775808'
    ),
}


@pytest.mark.parametrize("what", ODD_LINES)
def test_what_stands_before_the_damage_is_imported_and_not_twice(tmp_path: Path, what: str) -> None:
    from perfci.history.interchange import importer

    file = tmp_path / "x.jsonl"
    whole = list(to_lines(recorded(number) for number in range(50)))
    odd = ODD_LINES[what](whole[45])
    assert odd != whole[45]
    file.write_bytes(b"".join([*whole[:45], odd, *(whole[46:] if odd else ())]))
    with open_history(str(tmp_path / "h.sqlite")) as history:
        with pytest.raises(PerfciError, match=what):
            importer(file)(history)
        assert len(history.runs()) == 44
        file.write_bytes(b"".join(whole))
        assert importer(file)(history).summary == "6 new runs, 44 were there already"
        assert {run.environment for run in history.load_arrays().runs} == {HERE.key}
