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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, ValidationError, convert, structs
from msgspec import field as structs_field

from perfci.config.keys import AcceptTable, Keys, ProjectKeys, QuietTable
from perfci.errors import UsageError
from perfci.files import parse_toml, read_regular
from perfci.metrics import METRICS
from perfci.model.case import Metric
from perfci.model.measuring import MeasureSettings
from perfci.suites import has_own_files, usual_place
from perfci.trend import TrendSettings
from perfci.units import parse_share
from perfci.verdict.acceptance import Acceptance
from perfci.verdict.policy import Policy, with_threshold

T = TypeVar("T")
OWN_FILE = "perfci.toml"
PROJECT_FILE = "pyproject.toml"
S = TypeVar("S", bound=Struct)
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


def load_config(root: Path, explicit: Path | None = None) -> Config:
    """Return the configuration of the repository at ``root``, or the defaults.

    ``explicit`` names the file. Without it, perfci.toml is preferred to pyproject.toml. Raises
    UsageError if the file can't be read or understood.
    """
    files = (explicit,) if explicit else (root / OWN_FILE, root / PROJECT_FILE)
    for file in files:
        if explicit is None and not os.path.lexists(file):
            continue
        return _with_suite(parse_config(read_configuration(file), str(file)), root)
    return _with_suite(Config(), root)


def read_configuration(file: Path) -> str:
    """Return the text of a configuration's file. UsageError if it can't be read."""
    try:
        return read_regular(file).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(
            "unreadable-configuration", f"{file} can't be read: {reason}", "Correct the file."
        ) from error


def parse_configuration(text: str, where: str) -> dict[str, Any]:
    """Return the TOML in ``text`` of the file ``where``. UsageError if it isn't TOML."""
    try:
        return parse_toml(text)
    except ValueError as error:
        raise UsageError(
            "configuration-syntax", f"{where} is not TOML: {error}", "Correct that line."
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


def parse_config(text: str, where: str) -> Config:
    """Return the ``Config`` in the TOML ``text`` of the file ``where``.

    A pyproject.toml, or a file with ``[tool.perfci]``, is read at that table, any other as a whole.
    """
    content, name = own_table(parse_configuration(text, where), where)
    location = KeyLocation(where, name)
    config = _config(read_table(Keys, content, location), location)
    return structs.replace(config, accept=tuple(replace(a, file=where) for a in config.accept))


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
        raise UsageError("configuration-type", f"{where}: `{name}` is no table", "Write a table.")
    for name in (*content, *(f"tool.{name}" for name in tool)):
        plain = re.sub(r"^tool\.|[\W_]", "", name.lower())
        misnamed = name != "tool.perfci" and get_close_matches(plain, ["perfci"], 1, 0.82)
        if misnamed or (file == OWN_FILE and name in {*content} - {"tool"}):
            raise UsageError(
                "misnamed-table",
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


def _config(keys: Keys, location: KeyLocation) -> Config:
    _require_no_circle(keys.aliases, location.key("aliases"))
    return Config(
        **{name: getattr(keys, name) for name in ProjectKeys.__struct_fields__},
        settings=_same_named(MeasureSettings, keys, max_rounds=_max_rounds(keys, location)),
        quiet=keys.quiet,
        policy=_same_named(
            Policy,
            keys,
            looks=(keys.rounds, _max_rounds(keys, location)),
            metrics=_metric_policies(keys, location.key("metrics")),
            thresholds={
                benchmark: {
                    name: _threshold(name, value, location.key("thresholds").key(benchmark))
                    for name, value in table.items()
                }
                for benchmark, table in keys.thresholds.items()
            },
        ),
        trend=_same_named(TrendSettings, keys.trend),
        accept=_accept(keys, location),
    )


def _same_named(kind: type[T], table: Struct, **more: Any) -> T:
    """Return a ``kind`` from the keys of ``table`` that are named like its fields, and ``more``."""
    names = {field.name for field in fields(kind)} & set(table.__struct_fields__)  # type: ignore[arg-type]
    return kind(**{name: getattr(table, name) for name in names} | more)


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


def _max_rounds(keys: Keys, location: KeyLocation) -> int:
    if keys.max_rounds is UNSET:
        return max(keys.rounds, MeasureSettings().max_rounds)
    if keys.max_rounds < keys.rounds:
        expected = f"at least `rounds`, which is {keys.rounds}"
        raise location.key("max_rounds").wrong(expected, keys.max_rounds)
    return keys.max_rounds


def _metric_policies(keys: Keys, location: KeyLocation) -> dict[str, Metric]:
    policies = {}
    for name, table in keys.metrics.items():
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
        if isinstance(written, str):
            raise at.wrong(expected, written)
        return _amount(written, at, expected)
    try:
        return parse_share(written)
    except ValueError as error:
        raise at.wrong(str(error), written) from None


def _amount(written: float, location: KeyLocation, expected: str) -> float:
    """Return a number as a float. Raises UsageError for a negative or too large one."""
    if not 0 <= written <= sys.float_info.max:
        raise location.wrong(expected, written)
    return float(written)


def _accept(keys: Keys, location: KeyLocation) -> tuple[Acceptance, ...]:
    accepted: dict[tuple[str, str], Acceptance] = {}
    for number, table in enumerate(keys.accept):
        at = location.key(f"accept[{number}]")
        if (table.case, table.metric) in accepted:
            raise at.key("metric").wrong("a metric that this case accepts only once", table.metric)
        accepted[table.case, table.metric] = Acceptance(
            table.case,
            table.metric,
            table.because,
            by="" if table.by is UNSET else table.by,
            up_to=None if table.up_to is UNSET else _up_to(table, at),
            until="" if table.until is UNSET else table.until,
        )
    return tuple(accepted.values())


def _up_to(table: AcceptTable, location: KeyLocation) -> float:
    """Return a limit. It is read like a threshold, or for an unknown metric as either kind."""
    if table.metric in METRICS:
        return _threshold(table.metric, table.up_to, location, "up_to")
    try:
        if isinstance(table.up_to, int):
            return _amount(table.up_to, location.key("up_to"), "an amount, at least 0")
        return parse_share(table.up_to)
    except ValueError as error:
        raise location.key("up_to").wrong(str(error), table.up_to) from None


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """The location of a key in a file."""

    where: str
    path: str = ""

    def key(self, name: str) -> KeyLocation:
        """Return the location of a key of this table."""
        return replace(self, path=f"{self.path}.{name}" if self.path else name)

    def wrong(self, expected: str, value: Any) -> UsageError:
        """Return the error for a value that isn't what was expected."""
        return UsageError(
            "configuration-value",
            f"{self.where}: `{self.path}` is {_shown(value)}",
            f"Expected {expected}.",
        )

    def unknown(self, key: str, names: Iterable[str]) -> UsageError:
        """Return the error for a key that isn't one of the table's ``names``."""
        return UsageError(
            "unknown-key",
            f"{self.where}: `{self.key(key).path}` is not a key of perfci's",
            f"Keys here: {', '.join(names)}.",
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def read_table(kind: type[S], content: Any, location: KeyLocation) -> S:
    """Return a table as a struct. Raises UsageError for the first error in it."""
    known = {field.name: field for field in structs.fields(kind)}
    if not isinstance(content, dict):
        raise location.wrong(f"a table of {', '.join(known)}", content)
    for key in content:
        if key not in known:
            raise location.unknown(key, known)
    for name, field in known.items():
        if name not in content and field.default is field.default_factory is NODEFAULT:
            missing = location.key(name).path
            raise UsageError(
                "missing-key",
                f"{location.where}: `{missing}` is missing",
                f"Add `{name} = …` there.",
            )
    return kind(
        **{key: _value(known[key].type, raw, location.key(key)) for key, raw in content.items()}
    )


def _value(hint: Any, raw: Any, location: KeyLocation) -> Any:
    kind, metas = _parts(hint)
    origin, arguments = get_origin(kind), get_args(kind)
    if _is_struct(kind):
        return read_table(kind, raw, location)
    if origin is dict:
        if not isinstance(raw, dict):
            raise location.wrong("a table", raw)
        return {
            name: _value(arguments[1], value, location.key(name)) for name, value in raw.items()
        }
    if origin is tuple and _is_struct(arguments[0]):
        if not isinstance(raw, list):
            raise location.wrong("a list of tables", raw)
        return tuple(
            read_table(arguments[0], table, replace(location, path=f"{location.path}[{number}]"))
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
        if meta.extra and meta.extra["read"]:  # set by keys.written
            raw = meta.extra["read"](raw)
    if get_origin(kind) is tuple and isinstance(raw, list):
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
    """Return a hint's type and annotations, without ``UnsetType``."""
    metas: tuple[Meta, ...] = ()
    while get_origin(hint) in {Annotated, Union, UnionType}:
        arguments = get_args(hint)
        if get_origin(hint) is Annotated:
            hint, metas = arguments[0], (*arguments[1:], *metas)
        elif UnsetType in arguments:
            hint = next(argument for argument in arguments if argument is not UnsetType)
        else:
            break
    return hint, metas


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)
