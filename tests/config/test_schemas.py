"""The committed JSON Schemas are those of the code, and agree with what perfci reads and writes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from referencing import Registry
from referencing.jsonschema import DRAFT7

from perfci.config.loading import parse_config
from perfci.report.exporters.json import render as render_json
from tests import schemas
from tests.config.test_loading import EVERYTHING, WRONG
from tests.docs.pages import page
from tests.report.examples import alone_report, hostile_report, passing_report, rich_report
from tests.workflows.examples import ROOT

SCHEMAS = schemas.schemas()
NOT_SAID = (
    "`metrics.latency_p5`", "latency_p50,", "latency_p51",  # they may be a plug-in's
    "`inject.speed`", "in its turn an alias", "`cohens_d` is inf", "`alpha` is nan",
    "`budget` is inf", "`memory_limit` is '999",
)  # fmt: skip
"""What a schema can't say, or had better not."""


def problems(text: str, name: str = "perfci.schema.json") -> list[str]:
    """Return what a validator says of a file."""
    store = DRAFT7.create_resource({"type": "object"})
    validator = jsonschema.Draft7Validator(
        SCHEMAS[name], registry=Registry().with_resource(schemas.STORE, store)
    )
    return [one.message for one in validator.iter_errors(tomllib.loads(text))]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_committed_schemas_are_up_to_date(name: str) -> None:
    committed = (schemas.FOLDER / name).read_text(encoding="utf-8")
    assert committed == schemas.written(SCHEMAS[name]), "run `python -m tests.schemas`"
    jsonschema.Draft7Validator.check_schema(SCHEMAS[name])


def examples() -> dict[str, str]:
    """Return every configuration in this repository, the documentation's too."""
    found = {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for file in (ROOT / "pyproject.toml", *(ROOT / "examples").rglob("pyproject.toml"))
    }
    for name in ("configuration.md", "benchmarks.md", "how-do-i.md", "commenting.md"):
        for number, block in enumerate(re.findall(r"```toml\n(.*?)```", page(name), re.DOTALL)):
            if "[tool.perfci" in block:
                found[f"{name}:{number}"] = block
    return found | {"every key": EVERYTHING}


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_valid(name: str) -> None:
    parse_config(EXAMPLES[name], "pyproject.toml")
    assert problems(EXAMPLES[name], "pyproject.schema.json") == []


def test_there_are_examples_of_pages_and_projects() -> None:
    assert {"pyproject.toml", "examples/demo/base/pyproject.toml"} <= EXAMPLES.keys()
    assert len([name for name in EXAMPLES if name.startswith("configuration.md")]) >= 3


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_perfci_refuses_is_invalid(text: str, said: tuple[str, ...]) -> None:
    if "not TOML" in said:
        return
    unsaid = any(words in NOT_SAID for words in said)
    found: list[Any] = problems(text)
    assert bool(found) is not unsaid, found


@pytest.mark.parametrize(
    "text",
    [
        *('budget = "1.5 h"', "budget = 60", 'memory_limit = "500MB"', 'memory_limit = "8g"'),
        *('alpha = "1 %"', 'alpha = "0.01"', "alpha = 1e-6", "[metrics.own]\nthreshold = 5"),
        *('[metrics.latency_p50]\nthreshold = "500%"', 'pattern = "[ab]_*.py"'),
    ],
)
def test_what_perfci_reads_is_valid(text: str) -> None:
    if "own" not in text:
        parse_config(text, "perfci.toml")
    assert problems(text) == []


REPORTS = {
    "golden": (ROOT / "tests" / "data" / "golden" / "report.json").read_text(encoding="utf-8"),
    **{
        make.__name__: render_json(make())
        for make in (rich_report, passing_report, alone_report, lambda: hostile_report("a\n|\x00é"))
    },
}


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_is_valid_and_so_is_one_of_a_newer_version(name: str) -> None:
    plain = json.loads(REPORTS[name])
    plain["results"][0]["more"] = plain["more"] = 1
    jsonschema.Draft7Validator(SCHEMAS["report.schema.json"]).validate(plain)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("schema",), "perfci.report/2"), (("timing", "rounds"), 1.5), (("results",), {})),
        *((("results", 0, "status"), "better"), (("results", 0, "case"), "x" * 301)),
        *((("notes",), ["x"] * 1_001), (("head", "dirty"), None), (("skipped",), {"a": 1})),
        *((("results", 0, "p"), "0.01"), (("verdict", "reasons"), [[]])),
    ],
    ids=str,
)
def test_what_is_no_report_is_invalid(path: tuple[str | int, ...], value: Any) -> None:
    assert list(problems_of(path, lambda inside: inside.__setitem__(path[-1], value)))


@pytest.mark.parametrize(
    "path", [("schema",), ("results",), ("results", 0, "p"), ("verdict", "findings")], ids=str
)
def test_a_report_without_what_it_needs_is_invalid(path: tuple[str | int, ...]) -> None:
    assert list(problems_of(path, lambda inside: inside.pop(path[-1])))


def problems_of(path: tuple[str | int, ...], edit: Callable[[Any], object]) -> Iterator[Exception]:
    plain = inside = json.loads(REPORTS["rich_report"])
    for step in path[:-1]:
        inside = inside[step]
    edit(inside)
    return jsonschema.Draft7Validator(SCHEMAS["report.schema.json"]).iter_errors(plain)
