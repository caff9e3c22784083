"""A forge's description of its API: what a request and an answer have to look like."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path, and the values in the path that was asked for."""

    id: str
    pointer: str
    values: Mapping[str, str]


class Description:
    """A description in ``file``; ``error`` is the reference of what a failure's body is."""

    def __init__(self, file: Path, error: str) -> None:
        self._whole: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        self._address = f"urn:{file.stem}"
        self._error = error
        resource = DRAFT202012.create_resource(self._whole)
        self._registry: Registry[Any] = Registry().with_resource(self._address, resource)

    def operation(self, method: str, path: str) -> Operation | None:
        """Return the operation that is asked for, or None where the forge hasn't got it."""
        for template, methods in self._whole["paths"].items():
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template)
            match = re.fullmatch(pattern, path)
            found = methods.get(method.lower())
            if match and found:
                escaped = template.replace("~", "~0").replace("/", "~1")
                pointer = f"#/paths/{escaped}/{method.lower()}"
                return Operation(found["operationId"], pointer, match.groupdict())
        return None

    def request_faults(self, asked: Operation, query: Mapping[str, str], body: Any) -> list[str]:
        """Return what is wrong with a request."""
        faults = []
        known = {
            one["name"]: one
            for one in map(self._resolved, self._at(asked.pointer).get("parameters", []))
        }
        for name, text in query.items():
            if name not in known or known[name]["in"] != "query":
                faults.append(f"{asked.id} knows no parameter {name}")
                continue
            number = known[name]["schema"].get("type") == "integer"
            value = int(text) if number and text.isdigit() else text
            faults += self._faults(value, known[name]["schema"], f"{asked.id} {name}")
        content = self._at(asked.pointer).get("requestBody", {}).get("content", {})
        if not content:
            return faults if body is None else [*faults, f"{asked.id} takes no body"]
        schema = content["application/json"]["schema"]
        faults += self._faults(body, schema, f"{asked.id} body")
        strangers = set(body or {}) - set(schema["properties"])
        return [*faults, *(f"{asked.id} knows no field {name}" for name in sorted(strangers))]

    def answer_faults(self, asked: Operation, status: int, body: Any) -> list[str]:
        """Return what is wrong with an answer; statuses not described are errors like any other."""
        responses = self._at(asked.pointer)["responses"]
        where = f"{asked.id} answer {status}"
        if status < 400 and str(status) not in responses:
            return [f"{where} is not described"]
        content = self._resolved(responses.get(str(status), {})).get("content", {})
        if status == 204:
            return [f"{where} has a body"] if body is not None else []
        schema = content.get("application/json", {"schema": {"$ref": self._error}})["schema"]
        return self._faults(body, schema, where)

    def sample(self, name: str) -> Any:
        """Return something that the schema ``name`` takes, with nothing in it but what it needs."""
        return self._sample({"$ref": f"#/components/schemas/{name}"})

    def _sample(self, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            return self._sample(self._at(schema["$ref"]))
        if "enum" in schema:
            return schema["enum"][0]
        for choice in ("oneOf", "anyOf"):
            if choice in schema and "properties" not in schema:
                return self._sample(schema[choice][0])
        if "allOf" in schema:
            merged: dict[str, Any] = {}
            for part in schema["allOf"]:
                merged |= self._sample(part)
            return merged
        kind = schema.get("type", "object")
        if isinstance(kind, list):
            return None
        if kind == "object":
            properties = schema.get("properties", {})
            return {name: self._sample(properties[name]) for name in schema.get("required", ())}
        values = {"array": [], "string": "", "integer": 0, "number": 0, "boolean": False}
        return values[kind]

    def _faults(self, value: Any, schema: Mapping[str, Any], where: str) -> list[str]:
        validator = Draft202012Validator(self._absolute(schema), registry=self._registry)
        return [
            f"{where}: {error.json_path}: {error.message[:300]}"
            for error in validator.iter_errors(value)
        ]

    def _absolute(self, node: Any) -> Any:
        """A part that is taken out of the description still means the whole by its references."""
        if isinstance(node, dict):
            return {
                key: f"{self._address}{value}" if key == "$ref" else self._absolute(value)
                for key, value in node.items()
            }
        return [self._absolute(one) for one in node] if isinstance(node, list) else node

    def _resolved(self, part: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._at(part["$ref"]) if "$ref" in part else part

    def _at(self, pointer: str) -> Any:
        node: Any = self._whole
        for step in pointer.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
        return node
