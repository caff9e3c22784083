"""Write what Slack's own Python library accepts of the blocks that perfci sends, as JSON Schema.

    pip install slack-sdk && python tests/data/cut_slack.py > tests/data/slack-blocks.json

Slack publishes no JSON Schema of Block Kit. Names of fields and lengths are the library's own
(https://github.com/slackapi/python-slack-sdk, MIT License). The most blocks of a message, which the
library doesn't check, are from https://docs.slack.dev/reference/block-kit/blocks.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import Any

from slack_sdk.models.blocks import (
    HeaderBlock,
    MarkdownTextObject,
    PlainTextObject,
    SectionBlock,
)

MOST_BLOCKS = 50
MOST_CHARACTERS = 40_000


def text_of(kind: type, most: int) -> dict[str, Any]:
    fields = kind(text="a").attributes - ({"emoji"} if kind is MarkdownTextObject else set())
    return object_of(fields, {"type": {"const": kind.type}, "text": length(1, most)}, "text")


def length(least: int, most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most}


def object_of(fields: set[str], known: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: known.get(name, {}) for name in sorted(fields)},
        "required": ["type", *required],
        "additionalProperties": False,
    }


def schema() -> dict[str, Any]:
    identity = length(1, SectionBlock.block_id_max_length)
    any_text = [
        text_of(each, SectionBlock.text_max_length)
        for each in (PlainTextObject, MarkdownTextObject)
    ]
    section = {"type": {"const": "section"}, "block_id": identity, "text": {"oneOf": any_text}}
    heading = text_of(PlainTextObject, HeaderBlock.text_max_length)
    header = {"type": {"const": "header"}, "block_id": identity, "text": heading}
    blocks = [
        object_of(SectionBlock(text="a").attributes, section, "text"),
        object_of(HeaderBlock(text="a").attributes, header, "text"),
    ]
    return {
        "$comment": f"Made by tests/data/cut_slack.py of slack-sdk {version('slack-sdk')}.",
        "type": "object",
        "properties": {
            "text": length(1, MOST_CHARACTERS),
            "blocks": {"type": "array", "maxItems": MOST_BLOCKS, "items": {"oneOf": blocks}},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=1)
    sys.stdout.write("\n")
