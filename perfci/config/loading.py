"""Read ``[tool.perfci]`` of pyproject.toml, or perfci.toml, as a frozen ``Config``.

A mistyped key is an error that lists the right ones. If it were ignored, a gate would silently be
missing. msgspec checks types and bounds. The keys are walked here, because msgspec's messages name
neither the keys nor the right way to write a value.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, structs
from msgspec import field as structs_field

from perfci.config.keys import KEYS, MeasureSettings, MetricTable, ProjectKeys, QuietTable, keys_of
from perfci.errors import UsageError
from perfci.files import parse_toml, read_regular
from perfci.metrics import METRICS
from perfci.model.case import Metric
from perfci.model.measuring import DECIDING_ROUNDS
from perfci.suites import has_own_files, usual_place
from perfci.trend import TrendSettings
from perfci.units import parse_share
from perfci.verdict.acceptance import Acceptance
from perfci.verdict.policy import Policy, with_threshold

OWN_FILE = "perfci.toml"
PROJECT_FILE = "pyproject.toml"
NO_CHANGES: Mapping[str, Any] = MappingProxyType({})
_MOST_SHOWN = 200
"""Characters of a wrong value in a message."""


class Config(ProjectKeys, frozen=True):
    """The whole configuration.

    Paths are relative to the repository's root. ``python``, ``history`` and ``project`` are empty
    where they are not set.
    """

    settings: MeasureSettings = MeasureSettings()
    quiet: QuietTable = QuietTable()
    policy: Policy = structs_field(default_factory=Policy)
    trend: TrendSettings = TrendSettings()
    accept: tuple[Acceptance, ...] = ()


def load_config(
    root: Path, explicit: Path | None = None, changes: Mapping[str, Any] = NO_CHANGES
) -> Config:
    """Return the configuration of the repository at ``root``, or the defaults, with ``changes``.

    ``explicit`` names the file. Without it, perfci.toml is preferred to pyproject.toml. ``changes``
    are keys for this run, written as in a file. Raises UsageError if anything can't be understood.
    """
    if changes:  # alone first: what is wrong in them isn't the file's fault
        _read(KEYS, changes, KeyLocation("the options"))
    usual = (root / OWN_FILE, root / PROJECT_FILE)
    file = explicit or next(filter(os.path.lexists, usual), None)
    if file is None:
        config = _config(changes, KeyLocation("the options"))
    else:
        config = parse_config(read_configuration(file), str(file), changes)
    return _with_suite(config, root)


def read_configuration(file: Path) -> str:
    """Return the text of a configuration's file. UsageError if it can't be read."""
    try:
        return read_regular(file).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            "unreadable", f"{file} can't be read: {reason}", "Correct the file."
        ) from error


def parse_configuration(text: str, where: str) -> dict[str, Any]:
    """Return the TOML in ``text`` of the file ``where``. UsageError if it isn't TOML."""
    try:
        return parse_toml(text)
    except ValueError as error:
        raise UsageError(
            "bad-configuration", f"{where} is not TOML: {error}", "Correct that line."
        ) from error


def _with_suite(config: Config, root: Path) -> Config:
    """Return the configuration, for another tool's benchmarks if there are none of perfci's.

    It is returned unchanged if the user has set ``benchmarks`` or ``pattern``.
    """
    benchmarks, pattern = ProjectKeys().benchmarks, ProjectKeys().pattern
    if (config.benchmarks, config.pattern) != (benchmarks, pattern):
        return config
    if has_own_files(root, benchmarks, pattern):
        return config
    place = usual_place(root)
    return structs.replace(config, benchmarks=place[0], pattern=place[1]) if place else config


def parse_config(text: str, where: str, changes: Mapping[str, Any] = NO_CHANGES) -> Config:
    """Return the ``Config`` in the TOML ``text`` of the file ``where``, with ``changes``.

    A pyproject.toml, or a file with ``[tool.perfci]``, is read at that table, any other as a whole.
    """
    content, name = own_table(parse_configuration(text, where), where)
    config = _config(merged(content, changes), KeyLocation(where, name))
    return structs.replace(config, accept=tuple(replace(a, file=where) for a in config.accept))


def merged(table: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``table`` with ``changes``. Tables are merged, other values replaced."""
    return {**table} | {
        key: merged(table[key], value)
        if isinstance(value, Mapping) and isinstance(table.get(key), Mapping)
        else value
        for key, value in changes.items()
    }


def own_table(content: Mapping[str, Any], where: str) -> tuple[Any, str]:
    """Return perfci's table in a file's content, and its name, empty for the whole file.

    UsageError if a table is probably meant as perfci's, and would be ignored.
    """
    file = Path(where).name
    if file != PROJECT_FILE and "tool" not in content:
        return content, ""
    tool = content.get("tool", {})
    if not isinstance(tool, dict) or not isinstance(tool.get("perfci", {}), dict):
        name = "tool.perfci" if isinstance(tool, dict) else "tool"
        raise UsageError("bad-configuration", f"{where}: `{name}` is not a table", "Write a table.")
    for name in (*content, *(f"tool.{name}" for name in tool)):
        plain = re.sub(r"^tool\.|[\W_]", "", name.lower())
        misnamed = name != "tool.perfci" and get_close_matches(plain, ["perfci"], 1, 0.82)
        if misnamed or (file == OWN_FILE and name in {*content} - {"tool"}):
            raise UsageError(
                "bad-configuration",
                f"{where}: `{name}` configures nothing",
                "Write it in `[tool.perfci]`.",
            )
    return tool.get("perfci", {}), "tool.perfci"


def ignored_files(root: Path, folder: Path) -> tuple[Path, ...]:
    """Return the files in ``folder`` and above that configure perfci, but not for ``root``."""
    nearer = [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
    files = [each / name for each in reversed(nearer) for name in (OWN_FILE, PROJECT_FILE)]
    own = [file for file in files if configures(file)]
    return tuple(own[1:] if own and own[0].parent == root else own)


def configures(file: Path) -> bool:
    """Return whether a file configures perfci."""
    if file.name == OWN_FILE or not file.is_file():
        return os.path.lexists(file)
    try:
        tool = parse_toml(file.read_text("utf-8", "replace")).get("tool", {})
    except ValueError:  # where it is read, that is an error
        return False
    return isinstance(tool, dict) and "perfci" in tool


def _config(content: Mapping[str, Any], location: KeyLocation) -> Config:
    given = _read(KEYS, content, location)

    def part(record: type) -> dict[str, Any]:
        return {name: given[name] for name in keys_of(record) if name in given}

    settings = MeasureSettings(**part(MeasureSettings))
    quick = settings.rounds < DECIDING_ROUNDS  # too few to decide: the session ends after them
    most = settings.rounds if quick else max(settings.rounds, settings.max_rounds)
    settings = replace(settings, max_rounds=most)
    _require_no_circle(given.get("aliases", {}), location.key("aliases"))
    policy = Policy(
        **part(Policy),
        looks=(settings.rounds, settings.max_rounds),
        metrics=_metric_policies(given.get("metrics", {}), location.key("metrics")),
        thresholds={
            benchmark: {
                name: _threshold(name, value, location.key("thresholds").key(benchmark))
                for name, value in table.items()
            }
            for benchmark, table in given.get("thresholds", {}).items()
        },
    )
    others = {name: given[name] for name in ("quiet", "trend", "accept") if name in given}
    _check_accepted(given.get("accept", ()), content.get("accept", ()), location)
    return Config(**part(ProjectKeys), settings=settings, policy=policy, **others)


def _require_no_circle(aliases: Mapping[str, str], location: KeyLocation) -> None:
    """Raise UsageError if aliases go in a circle, from a name by others back to this name."""
    for old, new in aliases.items():
        seen = {old}
        while new in aliases and new not in seen:
            seen.add(new)
            new = aliases[new]  # noqa: PLW2901 (the chain is followed)
        if new in seen:
            expected = "a name that isn't in its turn an alias of this one"
            raise location.key(old).wrong(expected, aliases[old])


def _metric_policies(tables: Mapping[str, MetricTable], location: KeyLocation) -> dict[str, Metric]:
    policies = {}
    for name, table in tables.items():
        given = {key: value for key, value in structs.asdict(table).items() if value is not UNSET}
        if name not in METRICS:
            raise location.unknown(name, METRICS)
        if "share" in given and not METRICS[name].share:
            others = [key for key in table.__struct_fields__ if key != "share"]
            raise location.key(name).unknown("share", others)
        metric = METRICS[name]
        if "threshold" in given:
            written = given.pop("threshold")
            threshold = _threshold(name, written, location, f"{name}.threshold")
            metric = with_threshold(metric, threshold)
        policies[name] = replace(metric, **given)
    return policies


def _threshold(metric: str, written: Any, location: KeyLocation, key: str = "") -> float:
    """Return a metric's threshold, a share of base or an amount in its unit."""
    if metric not in METRICS:
        raise location.unknown(metric, METRICS)
    at = location.key(key or metric)
    if METRICS[metric].absolute:
        expected = f"an amount in {METRICS[metric].unit}, as a number, at least 0"
        if isinstance(written, str) or not 0 <= written <= sys.float_info.max:
            raise at.wrong(expected, written)
        return float(written)
    try:
        return parse_share(written)
    except ValueError as error:
        raise at.wrong(str(error), written) from None


def _check_accepted(
    accepted: Sequence[Acceptance], written: Sequence[Mapping[str, Any]], location: KeyLocation
) -> None:
    """Raise UsageError for a regression that is accepted twice, or up to an unfit limit."""
    seen = set()
    for number, (line, table) in enumerate(zip(accepted, written, strict=True)):
        at = location.key(f"accept[{number}]")
        if (line.case, line.metric) in seen:
            raise at.key("metric").wrong("a metric that this case accepts only once", line.metric)
        seen.add((line.case, line.metric))
        if line.metric in METRICS and "up_to" in table:
            _threshold(line.metric, table["up_to"], at, "up_to")


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """The location of a key: ``where`` is a file, or the options."""

    where: str
    path: str = ""

    def key(self, name: str) -> KeyLocation:
        """Return the location of a key of this table."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name)

    def wrong(self, expected: str, value: Any) -> UsageError:
        """Return the error for a value that isn't what was expected."""
        return UsageError(
            "bad-configuration",
            f"{self.where}: `{self.path}` is {_shown(value)}",
            f"Expected {expected}.",
        )

    def unknown(self, key: str, names: Iterable[str]) -> UsageError:
        """Return the error for a key that isn't one of the table's ``names``."""
        return UsageError(
            "bad-configuration",
            f"{self.where}: `{self.key(key).path}` is not a key of perfci's",
            f"Keys here: {', '.join(names)}.",
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _read_table(kind: Any, content: Any, location: KeyLocation) -> Any:
    """Return a table as its record. Raises UsageError for the first error in it."""
    keys = keys_of(kind)
    given = _read(keys, content, location)
    for field in msgspec.inspect.type_info(kind).fields:  # type: ignore[attr-defined]
        if field.required and field.name not in given:
            missing = location.key(field.name).path
            raise UsageError(
                "bad-configuration",
                f"{location.where}: `{missing}` is missing",
                f"Add `{field.name} = …` there.",
            )
    return kind(**given)


def _read(keys: Mapping[str, Any], content: Any, location: KeyLocation) -> dict[str, Any]:
    """Return the values in ``content`` by their ``keys``, which have types."""
    if not isinstance(content, Mapping):
        raise location.wrong(f"a table of {', '.join(keys)}", content)
    for key in content:
        if key not in keys:
            raise location.unknown(key, keys)
    return {key: _value(keys[key], raw, location.key(key)) for key, raw in content.items()}


def _value(hint: Any, raw: Any, location: KeyLocation) -> Any:
    kind, metas = _parts(hint)
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_record(kind):
        return _read_table(kind, raw, location)
    if origin is Mapping:
        if not isinstance(raw, Mapping):
            raise location.wrong("a table", raw)
        if names := get_args(arguments[0]):  # a Literal's
            return _read(dict.fromkeys(names, arguments[1]), raw, location)
        return {
            name: _value(arguments[1], value, location.key(name)) for name, value in raw.items()
        }
    if origin is tuple and _is_record(arguments[0]):
        if not isinstance(raw, (list, tuple)):
            raise location.wrong("a list of tables", raw)
        return tuple(
            _read_table(arguments[0], table, replace(location, path=f"{location.path}[{number}]"))
            for number, table in enumerate(raw)
        )
    try:
        return _converted(hint, raw)
    except ValueError as error:
        written = next((meta.extra["expected"] for meta in metas if meta.extra), "")
        derived = _expected(kind, metas) if isinstance(error, ValidationError) else str(error)
        raise location.wrong(written or derived, raw) from None


def _converted(hint: Any, raw: Any) -> Any:
    """Return a value, or a list of values, as its type. Raises ValueError for a wrong one."""
    kind, metas = _parts(hint)
    for meta in metas:
        if meta.extra and meta.extra["read"]:  # set by values.written
            raw = meta.extra["read"](raw)
    if get_origin(kind) is tuple and isinstance(raw, (list, tuple)):
        raw = [_converted(get_args(kind)[0], item) for item in raw]
    made = convert(raw, hint)
    if isinstance(made, float) and not math.isfinite(made):
        raise ValidationError  # the caller writes the message
    return made


def _expected(kind: Any, metas: Iterable[Meta]) -> str:
    """Describe the values that a type and its bounds allow."""
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) is tuple:
        least = max((meta.min_length or 0 for meta in metas), default=0)
        return f"a list of at least {least} texts" if least else "a list of texts"
    if kind is bool:
        return "true or false"
    least_number = next((meta.ge for meta in metas if meta.ge is not None), None)
    what = "a whole number" if kind is int else "a number"
    return f"{what} above zero" if least_number is None else f"{what}, at least {least_number:g}"


def _parts(hint: Any) -> tuple[Any, tuple[Meta, ...]]:
    """Return a hint's type and annotations, without ``UnsetType`` and ``None``."""
    metas: tuple[Meta, ...] = ()
    while get_origin(hint) in {Annotated, Union, UnionType}:
        arguments = get_args(hint)
        if get_origin(hint) is Annotated:
            own = (meta for meta in arguments[1:] if isinstance(meta, Meta))
            hint, metas = arguments[0], (*own, *metas)
        elif {UnsetType, NoneType} & {*arguments}:
            hint = next(each for each in arguments if each not in {UnsetType, NoneType})
        else:
            break
    return hint, metas


def _is_record(kind: Any) -> bool:
    return is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, Struct))
