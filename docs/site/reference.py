"""Write the pages of docs/reference from the code: ``python docs/site/reference.py``.

Keys come from the configuration's schema, metrics from their modules, commands from click, and the
trend's fields from fields.toml. Nothing there is edited by hand; a test fails where a page differs.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from perfci.cli.main import cli
from perfci.metrics import METRICS, metric_groups
from perfci.units import format_share, format_value

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs" / "reference"
MEANINGS = tomllib.loads((FOLDER / "fields.toml").read_text(encoding="utf-8"))
_GENERATED = "<!-- Written by docs/site/reference.py. Don't edit it. -->"
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)]+)\)")
_TABLES = {
    "quiet": ("QuietTable", "[tool.perfci.quiet]"),
    "trend": ("TrendSettings", "[tool.perfci.trend]"),
    "accept": ("Acceptance", "[[tool.perfci.accept]]"),
    "metrics": ("MetricTable", "[tool.perfci.metrics.latency_p50]"),
}
"""Keys that are tables, each with its definition in the schema and how it is written."""
_OF_SHARE = "[tool.perfci.metrics.host_memory_over_setup]"
"""A metric whose threshold has a share."""
_SHARED = 2
"""An option that so many commands have, with the same help, is described once."""


def pages() -> dict[str, str]:
    """Return each page's text by its file name."""
    return {
        "configuration.md": configuration(),
        "metrics.md": metrics(),
        "commands.md": commands(),
        "trend.md": trend(),
    }


def main() -> None:
    """Write them all."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


def _page(title: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", _GENERATED, *parts)) + "\n"


def _schema(name: str) -> dict[str, Any]:
    text = (ROOT / "schemas" / name).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


# --- configuration ---


def configuration() -> str:
    """Return the page of the configuration's keys."""
    schema = _schema("perfci.schema.json")
    parts = [
        (
            "Keys of `[tool.perfci]` in `pyproject.toml`. `perfci.toml` has them without that "
            'prefix. Durations are seconds, or texts such as `"90s"`, `"2m30s"` and `"1h"`. Sizes '
            'are bytes, or texts such as `"8GiB"`. Shares are numbers such as `0.05`, or texts '
            'such as `"5%"`. [Configuration](../configuration.md) says which file is read, and '
            "which keys are worth setting."
        )
    ]
    for name, key in schema["properties"].items():
        if name not in _TABLES:
            parts += [f"## `{name}`", *_key(name, key)]
    for name, (definition, header) in _TABLES.items():
        table = schema["definitions"][definition]
        parts += [f"## `{name}`", table["description"], *_table(header, table)]
    return _page("Configuration keys", *parts)


def _key(name: str, key: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paragraphs of a key that is no table of keys."""
    (example,) = key["examples"]
    yield key["description"]
    facts = _facts(key)
    if isinstance(example, dict):
        first, value = next(iter(example.items()))
        if isinstance(value, dict):
            name, example = f"{name}.{first}", value
        lines = [f"{_toml_key(key)} = {_toml(value)}" for key, value in example.items()]
        yield f"{facts.capitalize()}."
        yield "\n".join(["```toml", f"[tool.perfci.{name}]", *lines, "```"])
    elif isinstance(example, bool):
        yield f"{facts.capitalize()}."
    else:
        shown = "" if "default" in key else f"; for example `{name} = {_toml(example)}`"
        yield f"{facts[0].upper()}{facts[1:]}{shown}."


def _table(header: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table's keys, and an example that sets all of them."""
    rows, examples = ["| key | meaning | value |", "|---|---|---|"], {header: [header]}
    for name, key in table["properties"].items():
        facts = _facts(key, needed=name in table.get("required", ()))
        rows.append(f"| `{name}` | {key['description']} | {facts} |")
        own = _OF_SHARE if name == "share" else header
        (example,) = key["examples"]
        examples.setdefault(own, ["", own]).append(f"{name} = {_toml(example)}")
    yield "\n".join(rows)
    yield "\n".join(["```toml", *(line for lines in examples.values() for line in lines), "```"])


def _facts(key: Mapping[str, Any], needed: bool = False) -> str:
    default = [f"default `{_toml(key['default'])}`"] if "default" in key else []
    return "; ".join([_kind(key), *(["required"] if needed else []), *default])


def _kind(key: Mapping[str, Any]) -> str:
    """Return the type of a key's value."""
    kind = key.get("type")
    if "enum" in key:
        return "one of " + ", ".join(f"`{_toml(each)}`" for each in key["enum"])
    if isinstance(kind, list):
        return _number_or_text(key)
    if kind == "array":
        return "list of tables" if "$ref" in key["items"] else "list of strings"
    if kind == "object":
        return "table"
    return kind if kind in {"boolean", "string"} else _number(key, str(kind or "number"))


def _number_or_text(key: Mapping[str, Any]) -> str:
    if "%" in key["pattern"]:
        return "share"
    if "[bB]" in key["pattern"]:
        return "size"
    return "duration"


def _number(key: Mapping[str, Any], kind: str) -> str:
    if "minimum" in key:
        return f"{kind}, at least {key['minimum']}"
    return f"{kind} above {key['exclusiveMinimum']}" if "exclusiveMinimum" in key else kind


def _toml(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


# --- metrics ---


def metrics() -> str:
    """Return the page of the metrics and their policies."""
    about = {name: text for group in metric_groups() for name, text in group.about.items()}
    lines = [
        "| metric | what it is | unit | threshold | gate |",
        "|---|---|---|---|---|",
    ]
    for metric in METRICS.values():
        if metric.absolute:
            amount = format_value(metric.threshold, metric.unit)
            threshold = re.sub(r"\.0+ ", " ", amount)  # 1 MiB, not 1.00
        else:
            threshold = format_share(metric.threshold)
        meaning = _LINK.sub(r"](../\1)", about[metric.name])
        gate = metric.gate if metric.undecided == "pass" else f"{metric.gate}, {metric.undecided}"
        rule = (metric.unit, threshold, gate)
        cells = (f"`{metric.name}`", meaning, *rule)
        lines.append(f"| {' | '.join(cells)} |")
    return _page(
        "Metrics",
        "A threshold is a share of base, or an amount; with 0, any increase gates. *gate* is the "
        "effect of a regression: it fails the comparison, warns, or only informs. With "
        "*inconclusive*, an undecided comparison makes the verdict inconclusive. A metric that a "
        "machine can't measure is reported as not measured, never as zero. [Configuration]"
        "(../configuration.md#metrics) says how to change a policy.",
        "\n".join(lines),
    )


# --- commands ---


def commands() -> str:
    """Return the page of the commands and their options."""
    parts = [
        (
            "`perfci COMMAND --help` shows the same. [The README](../../README.md#exit-codes) has "
            "the exit codes. Name commits as in git: `main`, `HEAD~3`, `v2.0`, a hash. `.` is the "
            "working tree with its uncommitted and new files, without ignored files and reports "
            "that perfci wrote."
        )
    ]
    every = list(_every(cli))
    uses = Counter(row for _, command in every for row in _rows(command))
    shared = [row for row, times in uses.items() if times >= _SHARED]
    for name, command in every:
        parts += [f"## perfci {name}", *_described(name, command, shared)]
    parts += ["## Options of several commands", _options(shared)]
    return _page("Commands and options", *parts)


def _every(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from _every(command, f"{before}{name} ")


def _rows(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield each option's flags and help."""
    context = click.Context(command)
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            yield record


def _described(
    name: str, command: click.Command, shared: Collection[tuple[str, str]]
) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(click.Context(command)))
    yield f"    perfci {name} {usage}"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "")
    own = [row for row in _rows(command) if row not in shared]
    if own:
        yield _options(own)
    if also := [f"`{_flag(flags)}`" for flags, _ in _rows(command) if (flags, _) in shared]:
        yield f"[Shared options](#options-of-several-commands): {', '.join(also)}."
    for part in (command.epilog or "").split("\n\n"):
        if "\b" in part:
            lines = inspect.cleandoc(part.replace("\b", "").strip("\n")).splitlines()
            yield "\n".join(f"    {line.removeprefix('Example: ')}" for line in lines)
        elif part.startswith("Example: "):
            yield f"    {' '.join(part.split()).removeprefix('Example: ')}"
        elif part.strip():
            yield " ".join(part.split())


def _options(rows: Iterable[tuple[str, str]]) -> str:
    return "\n".join(
        f"- `{flags}`: {' '.join(text.split())}" if text else f"- `{flags}`" for flags, text in rows
    )


def _flag(flags: str) -> str:
    """Return an option's long form without its value."""
    return flags.split(" / ", maxsplit=1)[0].rsplit(", ", maxsplit=1)[-1].split(maxsplit=1)[0]


# --- files for programs ---


def _repeats(name: str, meaning: str) -> bool:
    """Return whether a field's meaning is only its name, with an article."""
    return meaning.lower() in {f"{article} {name}." for article in ("a", "its", "the")}


def _joined(meanings: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield each field, its names and its meaning; the ends of an interval are one."""
    lower, upper = "Lower end of", "Upper end of"
    for name, meaning in meanings.items():
        if meaning.startswith(lower):
            names = f"`{name}`, `{name.removesuffix('lo')}hi`"
            yield name, names, meaning.replace(lower, "Ends of")
        elif not meaning.startswith(upper):
            yield name, f"`{name}`", meaning


def trend() -> str:
    """Return the page of the fields of the trend's JSON."""
    parts = [
        (
            "`perfci trend --json FILE` writes `perfci.trend/1` ([the trend report]"
            "(../trend-report.md)). Fields stay, new ones may come. Numbers are in base units (s, "
            "bytes, ratio), and unknown values are `null`."
        )
    ]
    for title, fields in MEANINGS["trend"].items():
        lines = [
            f"- {names}" if _repeats(name, text) else f"- {names}: {' '.join(text.split())}"
            for name, names, text in _joined(fields)
        ]
        parts += [f"## {title}", _LINK.sub(r"](../\1)", "\n".join(lines))]
    return _page("Fields of the trend's JSON", *parts)


if __name__ == "__main__":
    main()
