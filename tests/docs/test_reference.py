"""docs/reference is what the code says, and each key of it has an example that perfci takes."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from perfci.config.loading import parse_config
from perfci.report.trend import trend_json
from tests.docs.pages import ROOT, page
from tests.report.site.histories import year
from tests.schemas import MEANINGS, schemas


def generator() -> ModuleType:
    """Return docs/site/reference.py, which is in no package."""
    spec = importlib.util.spec_from_file_location(
        "reference", ROOT / "docs" / "site" / "reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES: dict[str, str] = generator().pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert page(f"reference/{name}") == PAGES[name], "run `python docs/site/reference.py`"


def test_nothing_else_is_in_the_folder() -> None:
    assert {path.name for path in (ROOT / "docs" / "reference").glob("*.md")} == set(PAGES)


def keys(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each key of the configuration, those of its tables with the table's name."""
    definitions = schema["definitions"]
    tables = {"quiet": "QuietTable", "trend": "TrendSettings", "accept": "Acceptance"}
    for name, key in schema["properties"].items():
        if name not in tables:
            yield name, key
    for name, kind in {**tables, "metrics": "MetricTable"}.items():
        for key, of in definitions[kind]["properties"].items():
            yield f"{name}.{key}", of


KEYS = dict(keys(schemas()["perfci.schema.json"]))


@pytest.mark.parametrize("name", KEYS)
def test_a_key_has_a_meaning_an_example_and_a_place(name: str) -> None:
    assert KEYS[name]["description"]
    assert len(KEYS[name]["examples"]) == 1
    if name != "metrics":
        place = f"\n| `{name.partition('.')[2]}` |" if "." in name else f"\n## `{name}`\n"
        assert place in PAGES["configuration.md"]


def example_files() -> Iterator[str]:
    """Yield configurations: the page's blocks, and the examples of single keys."""
    yield from re.findall(r"```toml\n(.*?)```", PAGES["configuration.md"], re.DOTALL)
    for line in re.findall(r"for example `(.*)`\.\n", PAGES["configuration.md"]):
        yield f"[tool.perfci]\n{line}"


EXAMPLES = list(example_files())


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_taken_and_sets_something(text: str) -> None:
    default = parse_config("", "pyproject.toml")
    assert parse_config(text, "pyproject.toml") != default


def test_every_field_of_the_trend_is_there_and_no_other() -> None:
    plain = json.loads(trend_json(year()))
    fields = MEANINGS["trend"]
    assert plain.keys() == fields["trend"].keys()
    for name, of in fields.items():
        if name != "trend":
            records = plain[name]
            assert records, name
            assert all(record.keys() == of.keys() for record in records), name


def test_no_meaning_is_of_a_field_that_is_gone() -> None:
    files = schemas()
    known: dict[str, set[str]] = {}
    for name, root in (("report.schema.json", "Report"), ("bisection.schema.json", "Bisection")):
        known[root] = set(files[name]["properties"])
        for record, definition in files[name]["definitions"].items():
            known.setdefault(record, set()).update(definition["properties"])
    assert {name: set(of) for name, of in MEANINGS.items() if name != "trend"} == known
