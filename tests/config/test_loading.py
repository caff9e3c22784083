"""Reading the configuration: what is kept, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfci.config.keys import MeasureSettings
from perfci.config.loading import Config, ignored_files, load_config, parse_config
from perfci.errors import UsageError
from perfci.metrics import METRICS
from perfci.trend import TrendSettings
from tests.verdict.workers import case

EVERYTHING = """
[tool.perfci]
benchmarks = "perf"
pattern = "time_*.py"
python_path = ["lib"]
build = ["make"]
build_timeout = "1h"
pass_env = ["HF_HOME"]
baselines = "perf/baselines"
history = "postgresql://ci@db/perf"
budget = "5m"
rounds = 30
compile_rounds = 2
round_time = 1
burst = 0.05
warmup = 3
timeout = "90s"
seed = 7
threads = 2
cores = 1
memory_limit = "8GiB"
strict = true
alpha = 0.05
cohens_d = 0.5
[tool.perfci.aliases]
encode = "encoder"
"decode[batch=1]" = "decoder[batch=1]"
[tool.perfci.trend]
alpha = 1e-6
false_discoveries = 0.01
floor = 0.02
drift_days = 30
drift_floor = 0.05
[tool.perfci.quiet]
pin = false
[tool.perfci.metrics.latency_p50]
threshold = 0.03
undecided = "pass"
[tool.perfci.metrics.cold_start]
gate = "info"
[tool.perfci.thresholds.encoder]
latency_p50 = 0.08
"""


def test_a_repository_without_configuration_gets_the_defaults(tmp_path: Path) -> None:
    assert load_config(tmp_path) == Config()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load_config(tmp_path) == Config()
    (tmp_path / "pyproject.toml").write_text("[tool.perfci]\n")
    assert load_config(tmp_path) == Config()


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(EVERYTHING)
    config = load_config(tmp_path)
    assert (config.benchmarks, config.pattern, config.python_path) == (
        "perf",
        "time_*.py",
        ("lib",),
    )
    assert (config.build, config.build_timeout) == (("make",), 3600.0)
    assert config.history == "postgresql://ci@db/perf"
    assert config.aliases == {"encode": "encoder", "decode[batch=1]": "decoder[batch=1]"}
    assert config.trend == TrendSettings(1e-6, 0.01, 0.02, 30, 0.05)
    assert (config.pass_env, config.baselines) == (("HF_HOME",), "perf/baselines")
    assert config.settings == MeasureSettings(
        rounds=30,
        max_rounds=30,
        compile_rounds=2,
        budget=300.0,
        round_time=1.0,
        burst=0.05,
        warmup=3.0,
        timeout=90.0,
        seed=7,
        threads=2,
        cores=1,
        memory_limit=8 * 2**30,
    )
    assert (config.quiet.pin, config.quiet.malloc) == (False, True)
    assert (config.policy.strict, config.policy.alpha, config.policy.cohens_d) == (True, 0.05, 0.5)
    latency, cold = (config.policy.metrics[name] for name in ("latency_p50", "cold_start"))
    assert (latency.threshold, latency.gate, latency.undecided) == (0.03, "fail", "pass")
    assert (cold.threshold, cold.gate) == (0.1, "info")


@pytest.mark.parametrize(
    ("text", "rounds"),
    [
        ("", (5, 20)),
        ("rounds = 30", (30, 30)),
        ("rounds = 9\nmax_rounds = 8", (9, 9)),
        ("rounds = 2\nmax_rounds = 8", (2, 2)),  # a quick look
    ],
)
def test_the_most_rounds_follow_the_least(text: str, rounds: tuple[int, int]) -> None:
    config = parse_config(text, "perfci.toml")
    assert (config.settings.rounds, config.settings.max_rounds) == config.policy.looks == rounds


def test_changes_go_before_the_file_and_are_named_where_they_are_wrong(tmp_path: Path) -> None:
    (tmp_path / "perfci.toml").write_text("rounds = 7\n[quiet]\npin = false\ngc = false\n")
    config = load_config(tmp_path, changes={"budget": "1m", "quiet": {"gc": True}})
    assert (config.settings.rounds, config.settings.budget) == (7, 60.0)
    assert (config.quiet.pin, config.quiet.gc) == (False, True)
    with pytest.raises(UsageError, match=r"^the options: `python_path`"):
        load_config(tmp_path, changes={"python_path": ("../x",)})  # Python's lists may be tuples
    with pytest.raises(UsageError, match=r"^the options: `quiet.gcs` is not a key"):
        load_config(tmp_path, changes={"quiet": {"gcs": True}})


def test_a_share_is_a_number_or_a_percentage_and_an_amount_is_a_number() -> None:
    config = parse_config(
        'alpha = "1%"\n[trend]\nfloor = "1 %"\n[metrics.latency_p50]\nthreshold = "3%"\n'
        "[metrics.host_memory_over_setup]\nthreshold = 2097152\n"
        '[thresholds.encoder]\nlatency_p50 = "0.5 %"\ncold_start = "150%"\nrecompiles = 2\n',
        "perfci.toml",
    )
    policies = config.policy.metrics
    assert (config.policy.alpha, config.trend.floor) == (0.01, 0.01)
    assert policies["latency_p50"].threshold == 0.03
    assert policies["host_memory_over_setup"].threshold == 2097152.0
    assert config.policy.thresholds["encoder"] == {
        "latency_p50": 0.005,
        "cold_start": 1.5,
        "recompiles": 2.0,
    }


def test_perfcis_own_file_goes_before_pyproject_and_the_named_one_before_both(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.perfci]\nseed = 1\n")
    assert load_config(tmp_path).settings.seed == 1
    (tmp_path / "perfci.toml").write_text("seed = 2\n")
    assert load_config(tmp_path).settings.seed == 2
    named = tmp_path / "other.toml"
    named.write_text("[tool.perfci]\nseed = 3\n")
    assert load_config(tmp_path, named).settings.seed == 3


WRONG = [
    ("round = 7", ("`round`", " rounds,")),
    ("[quiet]\npins = true", ("`quiet.pins`", "pin,")),
    ("[metrics.latency_p5]\nthreshold = 1", ("`metrics.latency_p5`", "latency_p50,")),
    ("[metrics.latency_p51]\nthreshold = 1", ("latency_p50,",)),
    ("[metrics.latency_p50]\nthreshhold = 1", ("latency_p50.threshhold", "threshold,")),
    ("[metrics.latency_p50]\nthreshold = 5", ("threshold` is 5", '"5%" or "500%"', "0.05")),
    ("[metrics.accuracy_loss]\nthreshold = 1.0", ("threshold` is 1.0", '"1%" or "100%"')),
    ("[metrics.graph_breaks]\nthreshold = '5%'", ("is '5%'", "an amount in count")),
    ("[thresholds.encoder]\nlatency_p50 = 8", ("encoder.latency_p50` is 8", '"8%"')),
    ("[thresholds.encoder]\nlatency_p50 = '8'", ("encoder.latency_p50` is '8'", '"8%"')),
    ("[trend]\nfloor = 2", ("`trend.floor` is 2", '"2%"')),
    ('[[accept]]\ncase = "a"', ("`accept[0].metric` is missing",)),
    ('rounds = "many"', ("`rounds` is 'many'", "whole number, at least 2")),
    ("rounds = 1", ("`rounds` is 1", "at least 2")),
    ("threads = true", ("`threads` is True", "whole number")),
    ("[inject]\nlatency = 20", ("`inject.latency` is 20", "a share above 0")),
    ("[inject]\nspeed = 0.1", ("`inject.speed`", "Keys here: latency,")),
    ("strict = 1", ("`strict` is 1", "true or false")),
    ("cohens_d = inf", ("`cohens_d` is inf", "a number, at least 0")),
    ("accept = 3", ("`accept` is 3", "a list of tables")),
    ("installed = [1]", ("`installed` is [1]", "a list of texts")),
    ('project = "a\\n"', ("`project` is 'a\\n'", "a name of letters")),
    ('pass_env = ["A\\n"]', ("`pass_env` is ['A\\n']", "names of environment")),
    ("memory_limit = -1", ("`memory_limit` is -1", '"8GiB"')),
    ("[metrics.latency_p50]\nshare = 1", ("Keys here: threshold, gate, undecided.",)),
    ("alpha = 0", ("`alpha` is 0", "a number above zero, at most 0.5")),
    ("alpha = 2", ("`alpha` is 2", "a number above zero, at most 0.5")),
    ("alpha = nan", ("`alpha` is nan", "number")),
    ('budget = "soon"', ("`budget` is 'soon'", '"2m30s"')),
    ("burst = 0", ("`burst` is 0", "above zero")),
    ('memory_limit = "lots"', ("`memory_limit` is 'lots'", '"8GiB"')),
    ('build = "make"', ("`build` is 'make'", "a list")),
    ("build = [1]", ("`build` is [1]", "a list of texts")),
    ('build = [""]', ("`build` is ['']", "a list of texts")),
    ("pattern = 3", ("`pattern` is 3", 'such as "bench_*.py"')),
    ('pattern = "["', ("`pattern` is '['", 'such as "bench_*.py"')),
    ('pattern = "/bench.py"', ("`pattern` is '/bench.py'", 'such as "bench_*.py"')),
    *(
        (f"pattern = {pattern!r}", (f"`pattern` is {pattern!r}", 'such as "bench_*.py"'))
        for pattern in ("bench_**.py", "**.py", "a/**b/*.py", "***", ".", "./", "/", " ")
    ),
    ('build = ["a\\u0000"]', ("`build`", "a list of texts")),
    ('python = "a\\u0000"', ("`python`", "a text")),
    ('benchmarks = "a\\u0000"', ("`benchmarks`", "inside the repository")),
    ('pattern = "a\\u0000"', ("`pattern`", 'such as "bench_*.py"')),
    ('pass_env = ["A B"]', ("`pass_env` is ['A B']", "names of environment variables")),
    ('pass_env = ["A=1"]', ("`pass_env`", "names of environment variables")),
    ('benchmarks = "/etc"', ("`benchmarks` is '/etc'", "inside the repository")),
    ('python_path = ["../x"]', ("`python_path`", "inside the repository")),
    ("quiet = 3", ("`quiet` is 3", "a table of pin, malloc,")),
    ("[metrics]\nlatency_p50 = 0.5", ("latency_p50` is 0.5", "a table of threshold, gate, un")),
    ('[metrics.latency_p50]\ngate = "block"', ("gate` is 'block'", "fail, warn, info")),
    ('history = ""', ("`history` is ''", "a text")),
    ("[trend]\nalpha = 0", ("`trend.alpha` is 0", "above zero, at most 0.5")),
    ("[trend]\ndrift_days = 1", ("`trend.drift_days` is 1", "at least 2")),
    ("[trend]\nfloors = 0.1", ("`trend.floors`", " floor,")),
    ("[aliases]\na = 1", ("`aliases.a` is 1", "a text")),
    ('[aliases]\na = "b"\nb = "a"', ("`aliases.a` is 'b'", "in its turn an alias")),
    ("a = = 1", ("not TOML", "line 1")),
    (f"rounds = {'9' * 5000}", ("not TOML", "thousands of digits")),
    (f"x = {'[' * 3000}{']' * 3000}", ("not TOML", "nested too deep")),
    ("budget = 1e309", ("`budget` is inf", '"2m30s"')),
    (f'memory_limit = "{"9" * 400}GiB"', ("`memory_limit` is '999", "…", "below 2⁶³")),
    (f"memory_limit = {1 << 63}", ("`memory_limit` is 9223372036854775808", "below 2⁶³")),
]


# A JSON Schema knows no largest number, so these are not in WRONG.
BEYOND_A_FLOAT = [
    (f"[metrics.graph_breaks]\nthreshold = {'1' * 400}", ("an amount in count",)),
    (f"[thresholds.encoder]\nrecompiles = {'1' * 400}", ("an amount in count",)),
    (
        f"[[accept]]\ncase = 'a'\nmetric = 'b'\nbecause = 'c'\nup_to = {'1' * 400}",
        ("an amount, at least 0",),
    ),
]


@pytest.mark.parametrize(("text", "said"), WRONG + BEYOND_A_FLOAT)
def test_what_is_wrong_is_refused_with_the_key_and_what_is_right(
    text: str, said: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_config(text, "perfci.toml")
    assert caught.value.message.startswith("perfci.toml")
    for part in said:
        assert part in str(caught.value)


def test_a_benchmarks_threshold_goes_before_the_metrics_and_its_own_before_both() -> None:
    policy = parse_config(EVERYTHING, "pyproject.toml").policy
    latency = METRICS["latency_p50"]
    encoder, own = case(), case(thresholds={"latency_p50": 0.02})
    other = case("decoder", benchmark="decoder")
    found = [
        policy.for_case(latency, one.id, one.thresholds).threshold for one in (encoder, own, other)
    ]
    assert found == [0.08, 0.02, 0.03]
    assert policy.for_case(latency, encoder.id).undecided == "pass"


@pytest.mark.parametrize("line", ["latency_p51 = 0.1", "latency_p50 = -1", "latency_p50 = 'five'"])
def test_a_wrong_threshold_of_a_benchmark_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match=r"thresholds\.encoder"):
        parse_config(f"[thresholds.encoder]\n{line}\n", "perfci.toml")


def test_a_file_that_cannot_be_read_is_an_error_not_the_defaults(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        load_config(tmp_path, tmp_path / "missing.toml")
    (tmp_path / "perfci.toml").write_bytes(b"seed = \xff")
    with pytest.raises(UsageError, match="UTF-8"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", "[tool.perfcl]\nrounds = 6\n"),
        ("pyproject.toml", "[tool.perf-ci]\nrounds = 6\n"),
        ("pyproject.toml", "[tool.PerfCI.metrics.latency_p50]\nthreshold = 0.1\n"),
        ("pyproject.toml", "[perfci]\nrounds = 6\n"),
        ("pyproject.toml", "[tool.perfci]\nrounds = 6\n[tool.perfcii.quiet]\npin = false\n"),
        ("perfci.toml", "[tool.prefci]\nrounds = 6\n"),
        ("perfci.toml", "rounds = 6\n[[tool.perfci.accept]]\n"),
        ("perfci.toml", "[tool.perfci]\nrounds = 6\n[metrics.latency_p50]\n"),
    ],
)
def test_a_misnamed_table_is_refused(file: str, text: str) -> None:
    with pytest.raises(UsageError, match="configures nothing") as caught:
        parse_config(f"[tool.perf]\na = 1\n{text}" if "pyproject" in file else text, file)
    assert "`[tool.perfci]`" in caught.value.advice


@pytest.mark.parametrize("text", ["", "[tool.perf]\na = 1\n", "[tool]\nperf = 1\n", "tool = 1\n"])
def test_tables_of_other_tools_are_left_alone(text: str) -> None:
    if text == "tool = 1\n":
        with pytest.raises(UsageError):
            parse_config(text, "pyproject.toml")
    else:
        assert parse_config(text, "pyproject.toml") == Config()


def test_files_that_are_not_read_are_known(tmp_path: Path) -> None:
    deep = tmp_path / "libs" / "core"
    deep.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.perfci]\n")
    (tmp_path / "libs" / "pyproject.toml").write_text("[tool.other]\n")
    assert ignored_files(tmp_path, deep) == ()
    (deep / "pyproject.toml").write_text("[tool.perfci]\nrounds = 7\n")
    assert ignored_files(tmp_path, tmp_path) == ()
    assert ignored_files(tmp_path, deep) == (deep / "pyproject.toml",)
    (tmp_path / "perfci.toml").write_text("")
    (deep / "perfci.toml").write_text("broken")
    assert ignored_files(tmp_path, deep) == (
        tmp_path / "pyproject.toml",
        deep / "perfci.toml",
        deep / "pyproject.toml",
    )


@pytest.mark.parametrize(
    "pattern", ["bench_*.py", "**/bench_?.py", "**/*", "a/**/b.py", "*/*.py", "[ab]*.py", "**"]
)
def test_a_pattern_that_is_accepted_can_be_looked_for(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a").mkdir()
    config = parse_config(f"pattern = {pattern!r}", "perfci.toml")
    assert list(tmp_path.rglob(config.pattern)) is not None


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ("import sys\n\n\ndef bench():\n    sys.exit(3)\n", ("tests/benchmarks", "test_*.py")),
        ("import perfcit\n", ("tests/benchmarks", "test_*.py")),
        ("import perfci\nprint(perfci.load)\n", ("tests/benchmarks", "test_*.py")),
        ("import perfci\n@perfci.benchmark\n", ("benchmarks", "bench_*.py")),
        ("if True:\n    from perfci.pytest import benchmarks\n", ("benchmarks", "bench_*.py")),
    ],
)
def test_only_files_of_perfcis_own_form_hide_a_suite(
    tmp_path: Path, script: str, place: tuple[str, str]
) -> None:
    for name in ("benchmarks", "tests/benchmarks"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "benchmarks/bench_transport.py").write_text(script, encoding="utf-8")
    test = tmp_path / "tests/benchmarks/test_join.py"
    test.write_text("def test_join(benchmark):\n    benchmark(len, '')\n", encoding="utf-8")
    config = load_config(tmp_path)
    assert (config.benchmarks, config.pattern) == place
