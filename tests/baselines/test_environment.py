"""Environments, comparability, and old schemas."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.baselines import (
    differences,
    incomparable_reason,
    make_environment,
    require_schema,
    with_run,
)
from perfci.finding import finding
from perfci.version import BASELINE_SCHEMA
from tests.baselines.runs import FACTS, HERE, case, run


def test_the_key_can_be_read() -> None:
    assert re.fullmatch(r"linux-x86_64-cpu-torch2\.13\.0-py3\.11-[0-9a-f]{8}", HERE.key)
    with_gpu = make_environment({**FACTS, "device_name": "NVIDIA H200"})
    assert with_gpu.key.startswith("linux-x86_64-nvidia_h200-torch2.13.0-py3.11-")


def test_every_fact_decides_but_notes() -> None:
    for name in FACTS:
        assert make_environment({**FACTS, name: "other"}).key != HERE.key
    assert make_environment({**FACTS, "new": "fact"}).key != HERE.key
    noted = make_environment({**FACTS, "note_host": "runner-7"})
    assert noted.key == HERE.key
    assert noted.facts["note_host"] == "runner-7"


def test_the_order_of_facts_decides_nothing() -> None:
    assert make_environment(dict(reversed(FACTS.items()))) == HERE


@given(st.dictionaries(st.sampled_from([*FACTS, "device_name", "x"]), st.text()))
def test_a_key_is_always_a_plain_folder_name(facts: dict[str, str]) -> None:
    assert re.fullmatch(r"[a-z0-9_][a-z0-9._-]*", make_environment(facts).key)


def test_differences_name_both_values() -> None:
    other = {**FACTS, "cpu": "Xeon", "threads": "4", "note_host": "x"}
    assert differences(FACTS, other) == {
        "cpu": ("AMD EPYC 9654", "Xeon"),
        "threads": ("–", "4"),
    }


def test_only_the_same_environment_and_source_are_comparable() -> None:
    measured = run("a")
    baseline = with_run(None, measured, measured.cases[0], "one")
    assert incomparable_reason(baseline, HERE, case("a")) is None
    elsewhere = make_environment({**FACTS, "cpu": "Xeon"})
    assert incomparable_reason(baseline, elsewhere, case("a")) == finding(
        "other-environment", environment=baseline.environment
    )
    assert incomparable_reason(baseline, HERE, case("a", "s2")) == finding("source-changed")
    assert incomparable_reason(replace(baseline, sha="b" * 40), HERE, case("a")) is None


def test_the_current_schema_is_read() -> None:
    require_schema({"schema": BASELINE_SCHEMA, "x": 1})


@pytest.mark.parametrize("schema", [BASELINE_SCHEMA + 1, 0, -1, True, "1", None, 1.0])
def test_a_schema_that_is_not_known_is_refused(schema: object) -> None:
    with pytest.raises(ValueError, match="schema"):
        require_schema({"schema": schema})
