"""Read ``[tool.perfci]`` of pyproject.toml, or perfci.toml, as a frozen ``Config``.

A mistyped key is an error that names the nearest right one. If it were ignored, a gate would
silently be missing.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from msgspec import UNSET, Struct, structs
from msgspec import field as structs_field

from perfci.config.keys import AcceptTable, Keys, ProjectKeys
from perfci.config.reading import KeyLocation, read_table
from perfci.errors import UsageError
from perfci.files import parse_toml, read_regular
from perfci.metrics import METRICS
from perfci.model.worker import MeasureSettings, Quiet, SavedModel
from perfci.trend.change import TrendSettings
from perfci.units import parse_share
from perfci.verdict.acceptance import Acceptance
from perfci.verdict.policy import MetricPolicy, Policy, default_policy

T = TypeVar("T")
OWN_FILE = "perfci.toml"
PROJECT_FILE = "pyproject.toml"
_ACCEPT = re.compile(r"\s*\[\[\s*(?:tool\s*\.\s*perfci\s*\.\s*)?accept\s*\]\]")


class Config(ProjectKeys, frozen=True):
    """The whole configuration.

    Paths are relative to the repository's root. ``python``, ``history`` and ``project`` are empty
    where they are not set.
    """

    settings: MeasureSettings = MeasureSettings()
    quiet: Quiet = Quiet()
    policy: Policy = structs_field(default_factory=default_policy)
    trend: TrendSettings = TrendSettings()
    saved: tuple[SavedModel, ...] = ()
    accept: tuple[Acceptance, ...] = ()


def load_config(root: Path, explicit: Path | None = None) -> Config:
    """Return the configuration of the repository at ``root``, or the defaults.

    ``explicit`` names the file. Without it, perfci.toml goes before pyproject.toml. Raises
    UsageError where the file can't be read or understood, or where the current folder has a nearer
    one.
    """
    if explicit is None:
        _require_none_nearer(root, Path.cwd())
    files = (explicit,) if explicit else (root / OWN_FILE, root / PROJECT_FILE)
    for file in files:
        if explicit is None and not os.path.lexists(file):
            continue
        try:
            text = read_regular(file).decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise UsageError(
                "unreadable-configuration",
                f"{file} can't be read: {reason}",
                "Check the path given as --config.",
            ) from error
        config = parse_config(text, str(file), root)
        if explicit and explicit.name == PROJECT_FILE and not _configures(explicit):
            raise UsageError(
                "no-configuration",
                f"{file} was named as the configuration, and has no [tool.perfci]",
                "Name a file that has one, or leave out --config.",
            )
        return config
    return Config()


def _require_none_nearer(root: Path, here: Path) -> None:
    """Raise UsageError where a folder from ``here`` up to below ``root`` has a configuration.

    It may be a package of a monorepo. If its file were ignored, its gate would be missing.
    """
    if root not in here.parents:
        return
    below = (folder for folder in (here, *here.parents) if root in folder.parents)
    for file in (folder / name for folder in below for name in (OWN_FILE, PROJECT_FILE)):
        if _configures(file):
            known = next(
                (name for name in (OWN_FILE, PROJECT_FILE) if _configures(root / name)), ""
            )
            raise UsageError(
                "nearer-configuration",
                f"{file.relative_to(root)} configures perfci, but only the repository's root is "
                f"read: {f'its {known}' if known else 'there is no configuration'}",
                f"Name the one that is meant: --config {os.path.relpath(file, here)}. Its paths "
                "are relative to the repository's root.",
            )


def _configures(file: Path) -> bool:
    """Return whether ``file`` is perfci's own, or a pyproject.toml with ``[tool.perfci]``."""
    if file.name == OWN_FILE:
        return os.path.lexists(file)
    try:
        content = parse_toml(read_regular(file).decode("utf-8"))
    except (OSError, ValueError):  # no configuration to pass over
        return False
    tool = content.get("tool")
    return isinstance(tool, dict) and "perfci" in tool


def parse_config(text: str, where: str, root: Path = Path()) -> Config:
    """Return the ``Config`` in the TOML ``text`` of the file ``where``.

    A pyproject.toml, or a file with ``[tool.perfci]``, is read at that table, any other as a whole.
    Paths of saved models are relative to ``root``.
    """
    try:
        content: Any = parse_toml(text)
    except ValueError as error:
        raise UsageError(
            "configuration-syntax", f"{where} is not TOML: {error}", "Correct that line."
        ) from error
    name = ""
    if Path(where).name == PROJECT_FILE or "tool" in content:
        _require_well_named(content, where)
        for part in ("tool", "perfci"):
            content = content.get(part, {})
            name = f"{name}.{part}".lstrip(".")
            if not isinstance(content, dict):
                raise UsageError(
                    "configuration-type", f"{where}: `{name}` is no table", "Write a table."
                )
    location = KeyLocation(where, name)
    config = _config(read_table(Keys, content, location), location, root)
    return structs.replace(config, accept=_placed(config.accept, text, where))


def _require_well_named(content: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for a table that was meant as ``[tool.perfci]``."""
    tool = content.get("tool", {})
    if isinstance(tool, dict) and "perfci" not in tool:
        misnamed = [f"tool.{name}" for name in difflib.get_close_matches("perfci", tool, 1, 0.83)]
        misnamed += ["perfci"] if "perfci" in content else []
        misnamed += ["tools.perfci"] if "perfci" in _inner(content, "tools") else []
        if misnamed:
            raise UsageError(
                "unknown-key",
                f"{where}: `{misnamed[0]}` is not read by perfci",
                "Did you mean `[tool.perfci]`?",
            )


def _inner(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = content.get(name)
    return inner if isinstance(inner, dict) else {}


def _config(keys: Keys, location: KeyLocation, root: Path) -> Config:
    _require_no_circle(keys.aliases, location.key("aliases"))
    return Config(
        **{name: getattr(keys, name) for name in ProjectKeys.__struct_fields__},
        settings=_same_named(MeasureSettings, keys, max_rounds=_max_rounds(keys, location)),
        quiet=_same_named(Quiet, keys.quiet),
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
        saved=_saved(keys, location, root),
        accept=_accept(keys, location),
    )


def _same_named(kind: type[T], table: Struct, **more: Any) -> T:
    """Return a ``kind`` of ``more`` and of the keys that are named like its fields."""
    names = {field.name for field in fields(kind)} & set(table.__struct_fields__)  # type: ignore[arg-type]
    return kind(**{name: getattr(table, name) for name in names} | more)


def _require_no_circle(aliases: Mapping[str, str], location: KeyLocation) -> None:
    """Raise UsageError where a new name is renamed again to a name that it had."""
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


def _metric_policies(keys: Keys, location: KeyLocation) -> dict[str, MetricPolicy]:
    policies = dict(default_policy().metrics)
    for name, table in keys.metrics.items():
        given = {key: value for key, value in structs.asdict(table).items() if value is not UNSET}
        if name not in METRICS:
            raise location.unknown(name, METRICS)
        if "share" in given and not METRICS[name].share:
            others = [key for key in table.__struct_fields__ if key != "share"]
            raise location.key(name).unknown("share", others)
        if "threshold" in given:
            given["threshold"] = _threshold(name, given["threshold"], location, f"{name}.threshold")
            policies[name] = policies[name].with_threshold(given["threshold"])
        policies[name] = replace(policies[name], **given)
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


def _saved(keys: Keys, location: KeyLocation, root: Path) -> tuple[SavedModel, ...]:
    models: dict[str, SavedModel] = {}
    for number, table in enumerate(keys.saved):
        if table.name in models:
            expected = "a name that no other saved model has"
            raise location.key(f"saved[{number}]").key("name").wrong(expected, table.name)
        models[table.name] = _same_named(
            SavedModel,
            table,
            model_path=str((root / table.model_path).absolute()),
            inputs_path=str((root / table.inputs_path).absolute()),
            items=None if table.items is UNSET else table.items,
        )
    return tuple(models.values())


def _accept(keys: Keys, location: KeyLocation) -> tuple[Acceptance, ...]:
    lines: dict[tuple[str, str], Acceptance] = {}
    for number, table in enumerate(keys.accept):
        at = location.key(f"accept[{number}]")
        if (table.case, table.metric) in lines:
            raise at.key("metric").wrong("a metric that this case accepts only once", table.metric)
        lines[table.case, table.metric] = Acceptance(
            table.case,
            table.metric,
            table.because,
            by="" if table.by is UNSET else table.by,
            up_to=None if table.up_to is UNSET else _up_to(table, at),
            until="" if table.until is UNSET else table.until,
        )
    return tuple(lines.values())


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


def _placed(lines: tuple[Acceptance, ...], text: str, where: str) -> tuple[Acceptance, ...]:
    """Return ``lines`` with the lines of the file, where each has its own table header."""
    written = text.split("\n")
    starts = [number for number, line in enumerate(written, 1) if _ACCEPT.match(line)]
    if len(starts) != len(lines):  # a list of inline tables, say
        return lines
    placed = []
    for line, first in zip(lines, starts, strict=True):
        rest = enumerate(written[first:], first + 1)
        ends = (number for number, after in rest if after.lstrip().startswith("["))
        last = next(ends, len(written) + 1) - 1
        while last > first and not written[last - 1].strip():
            last -= 1
        placed.append(replace(line, file=where, first=first, last=last))
    return tuple(placed)
