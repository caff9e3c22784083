"""Cut Kubernetes' description of its objects to what a job is made of, as JSON Schema.

    python tests/data/cut_kubernetes.py _definitions.json > tests/data/kubernetes-job.json

The whole is ``kubernetes-json-schema/v1.29.0-local-strict/_definitions.json`` of the Python package
kubernetes-validate; where it comes from and its licence stand in ``kubernetes-job.LICENSE``. Prose
is left out, and where a description says "one of these", the words aren't checked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

JOB = "io.k8s.api.batch.v1.Job"
BEGINNING = "#/definitions/"
PROSE = ("description", "x-kubernetes-group-version-kind", "$schema")


def main() -> int:
    """Write the cut description to standard output."""
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["$defs"]
    kept: dict[str, Any] = {}
    pending = [JOB]
    while pending:
        name = pending.pop()
        if name not in kept:
            kept[name] = bare(whole[name])
            pending += references(kept[name])
    cut = {"$ref": BEGINNING + JOB, "definitions": kept}
    json.dump(cut, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
    return 0


def bare(node: Any) -> Any:
    """Return ``node`` without prose; a property may be called ``description``."""
    if isinstance(node, list):
        return [bare(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: bare(one) for name, one in value.items()}
        if key == "properties"
        else f"{BEGINNING}{value.rpartition('/')[2]}"
        if key == "$ref"
        else bare(value)
        for key, value in node.items()
        if key not in PROSE
    }


def references(node: Any) -> Iterator[str]:
    """Yield the name of every definition that ``node`` refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value.removeprefix(BEGINNING)
            else:
                yield from references(value)
    elif isinstance(node, list):
        for one in node:
            yield from references(one)


if __name__ == "__main__":
    sys.exit(main())
