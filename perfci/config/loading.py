"""Configuration: ``[tool.perfci]`` of pyproject.toml, or perfci.toml, to a frozen ``Config``.

A mistyped key is an error that names the nearest right one: kept silently, it would mean that a
gate somebody relies on isn't there.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from perfci.config import values
from perfci.config.table import Table
from perfci.errors import UsageError
from perfci.files import read_regular
from perfci.metrics import METRICS
from perfci.model.metric import Gate, Undecided
from perfci.model.settings import MeasureSettings, Quiet
from perfci.model.worker import SavedModel
from perfci.trend.settings import TrendSettings
from perfci.verdict.policy import MetricPolicy, Policy, default_policy, metric_policy

OWN_FILE = "perfci.toml"
PROJECT_FILE = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Config:
    """All that can be configured. Paths are relative to the repository's root.

    ``python`` is the one that runs benchmarks: a path, or a name on PATH; empty is perfci's own.
    ``installed`` are packages of the repository whose installed copy is meant to be measured.
    ``history`` is a path or an address; empty is a file in the user's data folder, named by
    ``project``, which is the repository's first commit where it is empty. ``aliases`` map an old
    benchmark name or case id to its new one.
    """

    benchmarks: str = "benchmarks"
    pattern: str = "bench_*.py"
    python: str = ""
    python_path: tuple[str, ...] = (".", "src")
    installed: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    build_timeout: float = 1800.0
    pass_env: tuple[str, ...] = ()
    baselines: str = "baselines"
    history: str = ""
    project: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    settings: MeasureSettings = field(default_factory=MeasureSettings)
    quiet: Quiet = field(default_factory=Quiet)
    policy: Policy = field(default_factory=default_policy)
    trend: TrendSettings = field(default_factory=TrendSettings)
    saved: tuple[SavedModel, ...] = ()


def load_config(root: Path, explicit: Path | None = None) -> Config:
    """Return the configuration of the repository at ``root``; the defaults where it has none.

    ``explicit`` names the file; else perfci.toml goes before pyproject.toml. UsageError where
    it can't be read or understood, or where the current folder has a nearer one.
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

    A package of a monorepo, say. Passed over in silence, its gate would not be there.
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
        content = tomllib.loads(read_regular(file).decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):  # no configuration to pass over
        return False
    tool = content.get("tool")
    return isinstance(tool, dict) and "perfci" in tool


def parse_config(text: str, where: str, root: Path = Path()) -> Config:
    """Return the ``Config`` that TOML ``text`` of the file ``where`` stands for.

    A file whose name is pyproject.toml, or which has a ``[tool.perfci]``, is read there; any
    other is all perfci's own. Paths of saved models are taken from ``root``.
    """
    try:
        content: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
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
                    "configuration-type", f"{where}: `{name}` is {content!r}", "Write a table."
                )
    return _config(Table(content, where, name), root)


def _require_well_named(content: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for a table meant as ``[tool.perfci]``: passed over, it gates nothing."""
    tool = content.get("tool", {})
    if isinstance(tool, dict) and "perfci" not in tool:
        misnamed = [f"tool.{one}" for one in difflib.get_close_matches("perfci", tool, 1, 0.83)]
        misnamed += [one for one in ("perfci",) if one in content]
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


def _config(table: Table, root: Path) -> Config:
    default = Config()
    config = Config(
        benchmarks=table.take("benchmarks", values.inside, default.benchmarks),
        pattern=table.take("pattern", values.file_pattern, default.pattern),
        python=table.take("python", values.text, default.python),
        python_path=table.take("python_path", values.each(values.inside), default.python_path),
        installed=table.take("installed", values.each(values.text), default.installed),
        build=table.take("build", values.commands, default.build),
        build_timeout=table.take("build_timeout", values.duration, default.build_timeout),
        pass_env=table.take("pass_env", values.variables, default.pass_env),
        baselines=table.take("baselines", values.inside, default.baselines),
        history=table.take("history", values.text, default.history),
        project=table.take("project", values.benchmark_name, default.project),
        aliases=_aliases(table.inner("aliases")),
        settings=_settings(table),
        quiet=_quiet(table.inner("quiet")),
        policy=_policy(table),
        trend=_trend(table.inner("trend")),
        saved=_saved(table, root),
    )
    table.finish()
    return config


def _aliases(table: Table) -> dict[str, str]:
    """Read ``[aliases]``: old names to new ones, which may be renamed again but not in a circle."""
    names = {old: table.take(old, values.text, "") for old in table.names()}
    for old, new in names.items():
        seen = {old}
        while new in names and new not in seen:
            seen.add(new)
            new = names[new]  # noqa: PLW2901 (the chain is followed)
        if new in seen:
            raise table.wrong(old, "a name that isn't in its turn an alias of this one", names[old])
    return names


def _settings(table: Table) -> MeasureSettings:
    default = MeasureSettings()
    rounds = table.take("rounds", values.whole(2), default.rounds)
    max_rounds = table.take("max_rounds", values.whole(2), max(rounds, default.max_rounds))
    if max_rounds < rounds:
        raise table.wrong("max_rounds", f"at least `rounds`, which is {rounds}", max_rounds)
    return MeasureSettings(
        rounds=rounds,
        max_rounds=max_rounds,
        compile_rounds=table.take("compile_rounds", values.whole(1), default.compile_rounds),
        budget=table.take("budget", values.duration, default.budget),
        round_time=table.take("round_time", values.duration, default.round_time),
        burst=table.take("burst", values.duration, default.burst),
        warmup=table.take("warmup", values.duration, default.warmup),
        timeout=table.take("timeout", values.duration, default.timeout),
        seed=table.take("seed", values.whole(0), default.seed),
        threads=table.take("threads", values.whole(0), default.threads),
        cores=table.take("cores", values.whole(0), default.cores),
        memory_limit=table.take("memory_limit", values.size, default.memory_limit),
    )


def _quiet(table: Table) -> Quiet:
    switches = {
        switch.name: table.take(switch.name, values.flag, default=True) for switch in fields(Quiet)
    }
    table.finish()
    return Quiet(**switches)


def _policy(table: Table) -> Policy:
    default = default_policy()
    return Policy(
        alpha=table.take("alpha", values.chance, default.alpha),
        cohens_d=table.take("cohens_d", values.number(0.0), default.cohens_d),
        strict=table.take("strict", values.flag, default.strict),
        metrics=_metric_policies(table.inner("metrics"), default.metrics),
        thresholds=_thresholds(table.inner("thresholds")),
    )


def _trend(table: Table) -> TrendSettings:
    default = TrendSettings()
    settings = TrendSettings(
        alpha=table.take("alpha", values.chance, default.alpha),
        false_discoveries=table.take("false_discoveries", values.chance, default.false_discoveries),
        floor=table.take("floor", values.share, default.floor),
        drift_days=table.take("drift_days", values.whole(2), default.drift_days),
        drift_floor=table.take("drift_floor", values.share, default.drift_floor),
    )
    table.finish()
    return settings


def _metric_policies(table: Table, defaults: Mapping[str, MetricPolicy]) -> dict[str, MetricPolicy]:
    policies = dict(defaults)
    for name in METRICS:
        if not table.has(name):
            continue
        inner = table.inner(name)
        default = metric_policy(METRICS[name])
        policies[name] = MetricPolicy(
            threshold=inner.take("threshold", values.threshold(METRICS[name]), default.threshold),
            gate=inner.take("gate", values.choice(*get_args(Gate)), default.gate),
            undecided=inner.take(
                "undecided", values.choice(*get_args(Undecided)), default.undecided
            ),
            share=inner.take("share", values.number(0.0), default.share)
            if METRICS[name].share
            else 0.0,
        )
        inner.finish()
    table.finish(known=METRICS)
    return policies


def _thresholds(table: Table) -> dict[str, dict[str, float]]:
    """Read ``[thresholds.BENCHMARK]``: any name, for base may have other benchmarks than head."""
    found: dict[str, dict[str, float]] = {}
    for benchmark in table.names():
        inner = table.inner(benchmark)
        found[benchmark] = {
            name: inner.take(name, values.threshold(METRICS[name]), METRICS[name].threshold)
            for name in METRICS
            if inner.has(name)
        }
        inner.finish(known=METRICS)
    return found


def _saved(table: Table, root: Path) -> tuple[SavedModel, ...]:
    models: dict[str, SavedModel] = {}
    for inner in table.array("saved"):
        name = inner.require("name", values.benchmark_name)
        if name in models:
            raise inner.wrong("name", "a name that no other saved model has", name)
        models[name] = SavedModel(
            name=name,
            model_path=str((root / inner.require("model_path", values.text)).absolute()),
            inputs_path=str((root / inner.require("inputs_path", values.text)).absolute()),
            modes=inner.take("modes", values.each(values.text, least=1), ("eager",)),
            items=inner.take("items", values.positive, None),
            allow_pickle=inner.take("allow_pickle", values.flag, default=False),
        )
        inner.finish()
    return tuple(models.values())
