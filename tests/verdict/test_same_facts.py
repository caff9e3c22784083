"""The demo's kept measurements give the facts that they gave when they were last kept."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.verdict import kept

_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "same_facts.py"
_spec = importlib.util.spec_from_file_location("same_facts", _SCRIPT)
assert _spec is not None
assert _spec.loader is not None
same_facts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(same_facts)


@pytest.fixture(scope="module")
def judged():
    return kept.all_judged()


def test_every_way_of_judging_gives_the_facts_that_it_gave(judged) -> None:
    old = kept.old()
    assert len(old) == len(judged)
    assert not list(same_facts.differences(old, judged))


ROW = {"case": "a", "metric": "b", "ratio": 1.5, "warnings": ["so"], "p": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ratio": 1.5 * (1.0 + 1e-12)}, []),
        ({"warnings": ["otherwise"]}, []),
        ({"se": 0.1}, []),
        ({"ratio": 1.5001}, ["$.results[0] (a b).ratio: 1.5, now 1.5001"]),
        ({"p": 0.5}, ["$.results[0] (a b).p: None, now 0.5"]),
        ({"metric": "c"}, ["$.results[0] (a b).metric: 'b', now 'c'"]),
    ],
)
def test_words_and_new_fields_are_no_facts_and_all_else_is(change, said) -> None:
    old, new = {"results": [ROW]}, {"results": [{**ROW, **change}]}
    assert list(same_facts.differences(old, new)) == said


def test_what_is_missing_differs() -> None:
    assert list(same_facts.differences({"results": [ROW]}, {"results": []}))
    assert list(same_facts.differences({"timing": 1}, {}))


def test_two_files_or_two_folders_can_be_compared(tmp_path: Path, capsys) -> None:
    for name, text in (("old", '{"a": 1}'), ("new", '{"a": 2}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(text)
    old, new = (tmp_path / name for name in ("old", "new"))
    assert same_facts.main(old, new) == 1
    assert same_facts.main(old / "report.json", new / "report.json") == 1
    assert same_facts.main(old, old) == 0
    assert "report.json: $.a: 1, now 2" in capsys.readouterr().out
