"""GitHub's own description of its API, cut to what perfci asks."""

from __future__ import annotations

from pathlib import Path

from tests.forges.openapi import Description, Operation

__all__ = ["Operation", "answer_faults", "operation", "request_faults", "sample"]

_GITHUB = Description(
    Path(__file__).parents[2] / "data" / "github-openapi.json", "#/components/schemas/basic-error"
)
operation = _GITHUB.operation
request_faults = _GITHUB.request_faults
answer_faults = _GITHUB.answer_faults
sample = _GITHUB.sample
