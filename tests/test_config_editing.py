"""Keys put into a user's configuration: nothing else of the file changes."""

from __future__ import annotations

import pytest

from perfci.config import parse_config
from perfci.config_editing import with_keys
from perfci.errors import UsageError

THEIRS = """\
# mine
[project]
name = 'x'   # keep

[tool.perfci]
budget =   "60s"
rounds = 5 # five

[tool.perfci.metrics.latency_p50]
threshold = 0.03

[tool.ruff]
line-length = 100
"""
KEYS = {("rounds",): 7, ("max_rounds",): 30, ("thresholds", "mixer", "latency_p50"): 0.08}


def test_the_keys_are_there_and_every_other_line_is_as_it_was() -> None:
    edited = with_keys(THEIRS, "pyproject.toml", KEYS)
    config = parse_config(edited, "pyproject.toml")
    assert (config.settings.rounds, config.settings.max_rounds) == (7, 30)
    assert config.policy.thresholds == {"mixer": {"latency_p50": 0.08}}
    kept = [line for line in THEIRS.splitlines() if not line.startswith("rounds")]
    left = iter(edited.splitlines())
    assert all(line in left for line in kept)  # in the same order
    assert "rounds = 7 # five" in edited
    assert "\n\n[tool.ruff]" in edited


def test_windows_line_ends_stay() -> None:
    theirs = THEIRS.replace("\n", "\r\n")
    edited = with_keys(theirs, "pyproject.toml", {("rounds",): 7})
    assert edited == theirs.replace("rounds = 5", "rounds = 7")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "perfci.toml"),
        ("rounds = 5\n", "perfci.toml"),
        ("[project]\nname = 'x'\n", "pyproject.toml"),
        ("tool.perfci.rounds = 5\n", "pyproject.toml"),
        ("[tool.perfci]\n[tool.perfci.thresholds.mixer]\ncold_start = 0.2\n", "other.toml"),
    ],
)
def test_any_shape_of_file_takes_them(text: str, where: str) -> None:
    policy = parse_config(with_keys(text, where, KEYS), where).policy
    assert policy.thresholds["mixer"]["latency_p50"] == 0.08
    assert ("cold_start" in text) == ("cold_start" in policy.thresholds["mixer"])


def test_a_key_where_a_table_should_be_is_refused() -> None:
    with pytest.raises(UsageError):
        with_keys("[tool]\nperfci = 3\n", "pyproject.toml", KEYS)


def test_what_would_be_no_configuration_is_refused() -> None:
    with pytest.raises(UsageError, match="max_rounds"):
        with_keys("max_rounds = 6\n", "perfci.toml", {("rounds",): 7})
