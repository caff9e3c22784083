"""A calibration as files: JSON (``perfci.calibration/1``), Markdown, and TOML to paste."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import msgspec

from perfci.config.loading import PROJECT_FILE
from perfci.model.calibration import Calibration, Suggestion
from perfci.model.codec import to_plain
from perfci.render.calibration import text as words
from perfci.render.clean import Clean, clean_json
from perfci.render.cutting import cut
from perfci.render.escape import Safe
from perfci.render.markdown import LIMIT, markdown_environment
from perfci.render.report_json import encodable
from perfci.render.templates import read_template


def render_calibration_json(calibration: Calibration) -> Clean:
    """Return the calibration as JSON. CodecError on a number that isn't finite."""
    plain = to_plain(calibration)
    ordered = {"schema": plain.pop("schema"), **plain}
    encoded = msgspec.json.encode(encodable(ordered))
    return clean_json(msgspec.json.format(encoded, indent=2).decode() + "\n")


# Suggestions as the lines of TOML that would say so in the file they belong into.

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def writable(suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    """Return the suggestions that belong into the configuration."""
    return tuple(one for one in suggestions if not one.where)


def toml_lines(calibration: Calibration) -> str:
    """Return the TOML of the suggestions that a configuration can hold; empty for none."""
    prefix = ("tool", "perfci") if calibration.configuration.endswith(PROJECT_FILE) else ()
    tables: dict[tuple[str, ...], list[str]] = {}
    for one in writable(calibration.suggestions):
        table = (*prefix, *one.path[:-1])
        tables.setdefault(table, []).append(f"{_key(one.path[-1])} = {one.value!r}")
    blocks = []
    for table, lines in tables.items():
        header = [f"[{'.'.join(map(_key, table))}]"] if table else []
        blocks.append("\n".join([*header, *lines]))
    return "\n\n".join(blocks)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


# GitHub Markdown, for a wiki page or an issue.


def render_calibration_markdown(calibration: Calibration, limit: int = LIMIT) -> str:
    """Return the calibration as Markdown, at most ``limit`` characters long."""
    environment = markdown_environment()
    environment.globals |= {
        "share": words.share,
        "rounds": words.rounds,
        "modes": words.modes_text,
        "setting": words.setting_text,
        "why": words.suggestion_text,
    }
    template = environment.from_string(read_template("calibration.md.j2"))
    toml = toml_lines(calibration)
    return cut(
        template.render(
            calibration=calibration,
            headline=words.headline(calibration),
            answers=words.answers(calibration),
            legend=words.LEGEND,
            main=words.main_rows(calibration),
            others=(*words.other_rows(calibration), *words.tail_rows(calibration)),
            bimodal=[row for row in calibration.seen if row.modes is not None],
            promise=words.promise_text(calibration),
            blind=words.blind_text(calibration),
            alarms=words.alarms_text(calibration),
            suggestions=calibration.suggestions,
            # keys and numbers only: names of benchmarks are letters, digits, `_`, `.` and `-`
            toml=Safe(f"```toml\n{toml}\n```") if toml else "",
            spent=words.spent_text(calibration),
        ),
        limit,
    )
