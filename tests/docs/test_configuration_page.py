"""docs/configuration.md lists every key, with the default that holds, and every metric's policy."""

from __future__ import annotations

import re
from dataclasses import fields

from perfci.config.loading import Config, parse_config
from perfci.metrics import METRICS, families
from perfci.model.worker import MeasureSettings, Quiet, SavedModel
from perfci.trend.change import TrendSettings
from perfci.units import format_share, format_value
from tests.docs.pages import page, rows, section

PAGE = page("configuration.md")
TABLES = {"settings", "quiet", "policy", "trend", "aliases", "accept", "saved"}
"""What is written as tables of their own, or as single keys of another name."""
NEVER_CONFIGURED = {"inject", "cold_start_rounds"}
POLICY = {"alpha", "cohens_d", "strict"}


def names(cls: type) -> set[str]:
    return {one.name for one in fields(cls)}


def keys(text: str = PAGE.split("\n## ", maxsplit=1)[0]) -> dict[str, str]:
    """Return the keys of a table (the page's first) with their defaults, as written."""
    return {row[0].strip("`"): row[1] for row in rows(text)}


def test_the_first_table_has_every_key() -> None:
    settings = names(MeasureSettings) - NEVER_CONFIGURED
    assert set(keys()) == (set(Config.__struct_fields__) - TABLES) | settings | POLICY


def test_the_defaults_are_those_that_hold() -> None:
    written = {key: value for key, value in keys().items() if value.startswith("`")}
    assert set(keys()) - set(written) == {
        "history",
        "project",
        "python",
    }  # each has its own default
    text = "\n".join(f"{key} = {value.strip('`')}" for key, value in written.items())
    assert parse_config(text, "perfci.toml") == Config()


def test_the_keys_of_the_trend_are_there_with_the_defaults_that_hold() -> None:
    written = keys(section(PAGE, "## Change points"))
    assert set(written) == names(TrendSettings)
    lines = [f"{key} = {value.strip('`')}" for key, value in written.items()]
    assert parse_config("\n".join(["[trend]", *lines]), "perfci.toml") == Config()


def test_every_quiet_setting_is_explained() -> None:
    assert {row[0].strip("`") for row in rows(section(PAGE, "## Quiet"))} == names(Quiet)


def test_every_key_of_a_saved_model_is_named_here_and_explained_there() -> None:
    here, there = section(PAGE, "## Saved models"), page("benchmarks.md")
    explained = section(there, "## A saved model")
    for key in names(SavedModel):
        assert f"`{key}`" in here
        assert f"`{key}`" in explained


def test_the_metrics_are_those_that_are_measured_with_their_policies() -> None:
    expected = []
    for metric in METRICS.values():
        if metric.absolute:
            amount = format_value(metric.threshold, metric.unit)
            threshold = re.sub(r"\.0+ ", " ", amount)  # 1 MiB, not 1.00
        else:
            threshold = format_share(metric.threshold)
        expected.append([f"`{metric.name}`", metric.unit, threshold, metric.gate, metric.undecided])
    told = rows(section(PAGE, "## Metrics"))
    about = [text for family in families() for text in family.about.values()]
    assert [row[:5] for row in told] == expected
    assert [row[5] for row in told] == about
