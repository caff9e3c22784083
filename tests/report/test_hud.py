"""The format of PyTorch's HUD: held to the table that it publishes."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema

from perfci.report.exporters import exporter
from tests.report.examples import EAGER, TUNED, hostile_report, rich_report, row
from tests.report.hostile import NAMES

TABLE = Path(__file__).parent.parent / "data" / "oss_ci_benchmark_v3.sql"


def written(report: Any) -> Any:
    return json.loads(exporter("hud").render(report))


def columns(sql: str) -> dict[str, Any]:
    """Return a ClickHouse table's columns by name, with their types as JSON Schemas."""
    body = re.sub(r"--[^\n]*|\s+", " ", sql.partition("(")[2].partition(") ENGINE")[0])
    return {name.strip(" `"): schema(kind) for name, kind in map(split_name, parts(body))}


def parts(text: str) -> list[str]:
    """Split at the commas that stand in no parentheses."""
    pieces, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


def split_name(column: str) -> tuple[str, str]:
    name, _, kind = column.partition(" ")
    return name, kind.strip()


def schema(kind: str) -> dict[str, Any]:
    outer, _, inner = kind.partition("(")
    arguments = parts(inner.rpartition(")")[0])
    match outer.strip().split(" ")[0]:
        case "Tuple":
            fields = {name.strip("`"): schema(of) for name, of in map(split_name, arguments)}
            return {"type": "object", "properties": fields, "additionalProperties": False}
        case "Array":
            return {"type": "array", "items": schema(arguments[0])}
        case "Map":
            return {"type": "object", "additionalProperties": schema(arguments[1])}
        case "String":
            return {"type": "string"}
        case "Float32":
            return {"type": "number"}
        case "UInt32" | "UInt64":
            return {"type": "integer"}
    raise AssertionError(kind)


RECORDS: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": columns(TABLE.read_text(encoding="utf-8")),
        "required": ["benchmark", "model", "metric"],
        "additionalProperties": False,
    },
}


def test_hud_gets_the_form_that_it_publishes() -> None:
    for report in (rich_report(), *map(hostile_report, NAMES)):
        jsonschema.validate(written(report), RECORDS)
    assert written(rich_report())


def test_hud_gets_microseconds_because_it_cuts_values_to_two_decimals() -> None:
    records = written(rich_report())
    assert records[0] == {
        "benchmark": {
            "name": "perfci",
            "dtype": "",
            "extra_info": {
                "arch": "AMD EPYC 9654",
                "batch": "1",
                "device": "cpu",
                "mode": "eager",
                "torch": "2.13.0+cpu",
            },
        },
        "model": {"name": EAGER, "backend": "eager"},
        "metric": {
            "name": "latency_p50(us)",
            "benchmark_values": [1312.0],
            "extra_info": {"better": "lower", "status": "regressed"},
        },
    }


def test_hud_gets_each_workers_value_and_the_device_that_measured() -> None:
    report = rich_report()
    head = replace(report.results[0].head, values=(1e-3, 2e-3))
    environment = replace(
        report.environment,
        facts={"cuda": "13.0", "device_name": "NVIDIA H100", "cpu": "AMD EPYC 9654"},
    )
    first = replace(report.results[0], head=head)
    (record,) = written(replace(report, results=(first,), environment=environment))
    assert record["metric"]["benchmark_values"] == [1000.0, 2000.0]
    device = record["benchmark"]["extra_info"]
    assert (device["device"], device["arch"]) == ("cuda", "NVIDIA H100")


def test_what_head_did_not_measure_is_left_out() -> None:
    gone = replace(row(EAGER, "graph_breaks", 0, 0, "regressed"), head=None)
    endless = row(TUNED, "latency_p50", 1.0, 1.0, "inconclusive")
    endless = replace(endless, head=replace(endless.head, center=math.inf))
    assert not written(rich_report(results=(gone, endless)))
