"""Cut GitHub's own description of its API to what perfci asks, as plain JSON Schema.

    python tests/data/cut_openapi.py api.github.com.json > tests/data/github-openapi.json

The whole description (13 MB) is ``generated/api.github.com.json`` of the npm package
``@octokit/openapi``; where it comes from and its licence stand in ``github-openapi.LICENSE``.
Prose and examples are left out, and OpenAPI 3.0's ``nullable`` becomes JSON Schema's ``null``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = "/repos/{owner}/{repo}"
OPERATIONS = {
    f"{REPOSITORY}/pulls": ("get",),
    f"{REPOSITORY}/pulls/{{pull_number}}": ("get",),
    f"{REPOSITORY}/git/commits/{{commit_sha}}": ("get",),
    f"{REPOSITORY}/issues": ("get", "post"),
    f"{REPOSITORY}/issues/{{issue_number}}": ("patch",),
    f"{REPOSITORY}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{REPOSITORY}/issues/comments/{{comment_id}}": ("patch", "delete"),
    f"{REPOSITORY}/check-runs": ("post",),
    f"{REPOSITORY}/check-runs/{{check_run_id}}": ("patch",),
    f"{REPOSITORY}/commits/{{ref}}/check-runs": ("get",),
}
PROSE = ("description", "example", "examples", "summary", "tags", "externalDocs", "title")


def main() -> int:
    """Write the cut description to standard output."""
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    paths = {
        path: {method: whole["paths"][path][method] for method in methods}
        for path, methods in OPERATIONS.items()
    }
    cut: dict[str, Any] = {
        "openapi": whole["openapi"],
        "info": {
            "title": whole["info"]["title"],
            "version": whole["info"]["version"],
            "license": whole["info"]["license"],
        },
        "paths": bare(paths),
        "components": {},
    }
    kept: set[str] = set()
    pending = list(references(cut["paths"]))
    while pending:
        reference = pending.pop()
        if reference in kept:
            continue
        kept.add(reference)
        _, components, kind, name = reference.split("/")
        part = bare(whole[components][kind][name])
        cut["components"].setdefault(kind, {})[name] = part
        pending += references(part)
    json.dump(cut, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
    return 0


def references(node: Any) -> Iterator[str]:
    """Yield every ``$ref`` below ``node``."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def bare(node: Any, *, names: bool = False) -> Any:
    """Return ``node`` without prose; with ``names``, its keys are names and all are kept."""
    if isinstance(node, list):
        return [bare(value) for value in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: bare(value, names=key in NAMED and not names)
        for key, value in node.items()
        if names or (key not in PROSE and not key.startswith("x-") and key != "nullable")
    }
    return kept if names or node.get("nullable") is not True else or_null(kept)


NAMED = ("properties", "paths", "responses", "headers", "schemas")
"""Keys whose values map names, which may be words that mean prose elsewhere."""


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also takes null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    also = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **also}


if __name__ == "__main__":
    sys.exit(main())
