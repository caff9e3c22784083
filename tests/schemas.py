"""Writes the JSON Schemas of ``schemas/``: ``python -m tests.schemas``.

Of the configuration, as perfci.toml and as ``[tool.perfci]`` of pyproject.toml, of the report, and
of what ``perfci bisect`` writes.
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from perfci.bisect import Bisection, Culprit
from perfci.config.keys import MeasureSettings, MetricTable, ProjectKeys, Tables, keys_of
from perfci.metrics import METRICS, metric_groups
from perfci.model.case import Metric
from perfci.model.report import Report
from perfci.report.reading import shape_of
from perfci.verdict.acceptance import Acceptance
from perfci.verdict.policy import Policy
from perfci.version import BISECTION_SCHEMA, REPORT_SCHEMA

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "schemas"
MEANINGS = tomllib.loads((ROOT / "docs" / "reference" / "fields.toml").read_text(encoding="utf-8"))
"""What each field of a file means, by record and field."""
DRAFT = "http://json-schema.org/draft-07/schema#"
"""What SchemaStore asks for, and what every editor's validator knows."""
STORE = "https://json.schemastore.org/pyproject.json"


def schemas() -> dict[str, Any]:
    """Return each file's content."""
    configuration, definitions = _configuration()
    return {
        "perfci.schema.json": {"$schema": DRAFT, **configuration, "definitions": definitions},
        "pyproject.schema.json": {
            "$schema": DRAFT,
            "title": "pyproject.toml, with [tool.perfci]",
            "allOf": [{"$ref": STORE}],
            "properties": {"tool": {"type": "object", "properties": {"perfci": configuration}}},
            "definitions": definitions,
        },
        "report.schema.json": {"$schema": DRAFT, **_record(shape_of(Report), REPORT_SCHEMA)},
        "bisection.schema.json": {"$schema": DRAFT, **_bisection()},
    }


def _record(kind: type, name: str) -> dict[str, Any]:
    """Return the schema ``name`` of a file, in which fields of newer versions have a place."""
    (schema,), definitions = msgspec.json.schema_components(
        [kind], ref_template="#/definitions/{name}"
    )
    for each in definitions.values():
        each.pop("additionalProperties", None)
        each["description"] = inspect.cleandoc(each["description"])
    own = schema["$ref"].rpartition("/")[2]
    definitions[own]["properties"]["schema"] = {"const": name}
    definitions[own]["required"].append("schema")
    for of, each in definitions.items():
        each["properties"] = _with_meanings(of, each["properties"])
    record = definitions.pop(own)
    return {**record, "title": name, "definitions": definitions}


def _with_meanings(of: str, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the record ``of``, each with its meaning. KeyError without one."""
    return {
        name: {"description": MEANINGS[of][name], **field} for name, field in properties.items()
    }


def _bisection() -> dict[str, Any]:
    """Return the schema of a search's answer, which is written with all its fields."""
    found = _record(Bisection, BISECTION_SCHEMA)
    culprit = found["definitions"][Culprit.__name__]
    culprit["properties"]["replay"] = {
        "description": MEANINGS[Culprit.__name__]["replay"],
        "type": "string",
    }
    for each in (found, *found["definitions"].values()):
        each["required"] = list(each["properties"])
    return found


def _configuration() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of all ``KEYS``, and those of their tables."""
    records = (ProjectKeys, MeasureSettings, Policy, Tables)
    _, definitions = msgspec.json.schema_components(records, ref_template="#/definitions/{name}")
    parts = {of: definitions.pop(of.__name__)["properties"] for of in records}
    properties = {name: part[name] for of, part in parts.items() for name in keys_of(of)}
    keys = {
        "title": "[tool.perfci]",
        "description": "The table `[tool.perfci]` of pyproject.toml, or the whole of perfci.toml.",
        "type": "object",
        "properties": properties,
    }
    definitions.pop(Metric.__name__)  # of a policy that is not a key
    definitions[Acceptance.__name__]["properties"].pop("file")
    for each in (keys, *definitions.values()):
        each["additionalProperties"] = False
    for each in _objects([definitions, properties]):
        # a bound type's schema can't say that a text may stand for a number
        if each.get("type") in ("number", "integer") and "pattern" in each:
            each["type"] = [each["type"], "string"]
        if isinstance(each.get("type"), list):
            each.pop("anyOf", None)
        if each.get("default", 0) in ("", [], {}, (), None):
            del each["default"]
        if each.get("type") == "boolean":
            each["examples"] = [not each["default"]]
    about = {name: text for group in metric_groups() for name, text in group.about.items()}
    policy = definitions[MetricTable.__name__]
    own = {name: _of(metric, policy["properties"]) for name, metric in METRICS.items()}
    keys["properties"]["metrics"]["properties"] = {
        name: {**policy, "description": about[name], "properties": of} for name, of in own.items()
    }
    keys["properties"]["thresholds"]["additionalProperties"]["properties"] = {
        name: of["threshold"] for name, of in own.items()
    }
    return keys, definitions


def _of(metric: Metric, keys: dict[str, Any]) -> dict[str, Any]:
    """Return a metric's own keys, with its defaults; ``share`` where it has one."""
    threshold = {**keys["threshold"], "exclusiveMaximum": 1}
    if metric.absolute:
        threshold = {"description": f"An amount in {metric.unit}.", "type": "number", "minimum": 0}
    own = {key: {**keys[key], "default": getattr(metric, key)} for key in keys}
    for key in own.values():
        del key["examples"]  # they are of no metric in particular
    own["threshold"] = {**threshold, "default": metric.threshold}
    return {key: of for key, of in own.items() if key != "share" or metric.share}


def _objects(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _objects(inner)


def written(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them all."""
    for name, content in schemas().items():
        (FOLDER / name).write_text(written(content), encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
