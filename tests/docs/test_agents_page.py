"""docs/agents.md: the fields that its jq programs read are in a report."""

from __future__ import annotations

import re

from tests.docs.pages import page, section
from tests.schemas import schemas


def test_each_field_that_is_read_is_in_the_schema() -> None:
    schema = schemas()["report.schema.json"]
    records = (schema, *schema["definitions"].values())
    known = {name for record in records for name in record["properties"]}
    programs = re.findall(
        r"^    jq '(.+)'", section(page("agents.md"), "## The report"), re.MULTILINE
    )
    read = {
        name
        for program in programs
        for part in re.findall(r"\.\w[\w.]*|\{[\w, ]+\}", program)
        for name in re.findall(r"\w+", part)
    }
    assert {"verdict", "status", "ratio_hi", "gate"} <= read <= known
