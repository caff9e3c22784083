"""Baselines on a real disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perfci.baselines import BaselineStore
from perfci.errors import DamagedFile, OutsideError
from tests.baselines.runs import BREAK, HERE, OWN, QUANTILES, WHOLE, run

CASE = "encoder[batch=1,mode=eager]"
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "baselines")


def test_what_is_stored_is_read_back(store: BaselineStore) -> None:
    (path,) = store.save_run(run(CASE), "one")
    baseline = store.load(HERE.key, CASE)
    assert baseline is not None
    assert path.parent.name == HERE.key
    assert (baseline.case, baseline.sha, baseline.source_hash) == (CASE, "a" * 40, "s1")
    outputs = baseline.outputs()
    assert [output.round for output in outputs] == [0, 1, 2]
    assert outputs[0].values == {"latency_p50": 1.2, "graph_breaks": 1.0, "tokens": 10.0}
    assert outputs[0].quantiles == QUANTILES
    assert outputs[0].graph_events == (BREAK,)
    assert outputs[0].output == {"": WHOLE}
    assert outputs[0].extra_metrics == (OWN,)
    assert {output.side for output in outputs} == {"base"}


def test_measuring_a_commit_again_adds_a_session(store: BaselineStore) -> None:
    store.save_run(run(CASE), "one")
    (path,) = store.save_run(run(CASE, latency=1.3), "two")
    baseline = store.load(HERE.key, CASE)
    assert baseline is not None
    assert [session.id for session in baseline.sessions] == ["one", "two"]
    assert [output.values["latency_p50"] for output in baseline.outputs()][::3] == [1.2, 1.3]
    assert path.exists()


def test_the_last_ten_sessions_are_kept(store: BaselineStore) -> None:
    for number in range(13):
        store.save_run(run(CASE), str(number))
    baseline = store.load(HERE.key, CASE)
    assert baseline is not None
    assert [session.id for session in baseline.sessions] == [str(n) for n in range(3, 13)]


@pytest.mark.parametrize("change", [{"sha": "b" * 40}, {"source_hash": "s2"}])
def test_another_commit_or_source_replaces_all(
    store: BaselineStore, change: dict[str, str]
) -> None:
    store.save_run(run(CASE), "one")
    store.save_run(run(CASE, **change), "two")
    baseline = store.load(HERE.key, CASE)
    assert baseline is not None
    assert [session.id for session in baseline.sessions] == ["two"]


def test_a_case_that_failed_is_not_stored(store: BaselineStore) -> None:
    written = store.save_run(run("a", "b", failed=("b",)), "one")
    assert len(written) == 1
    assert [baseline.case for baseline in store.load_all(HERE.key)] == ["a"]


def test_cases_with_the_same_slug_have_files_of_their_own(store: BaselineStore) -> None:
    names = ("a[x=1]", "a[x:1]", "a" * 300, "a" * 301)
    store.save_run(run(*names), "one")
    assert {baseline.case for baseline in store.load_all(HERE.key)} == set(names)


@pytest.mark.parametrize("key", ["..", ".", "../outside", "/", ""])
def test_a_key_that_is_a_path_reaches_nothing(store: BaselineStore, key: str) -> None:
    outside = BaselineStore(Path(str(store._folder)).parent)
    outside.save_run(run("a"), "one")
    store.save_run(run("a"), "one")
    assert store.load_all(key) == ()
    assert store.load(key, "a") is None
    assert store.remove(key) == ()


def _changed(**fields: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **fields})


DAMAGES: dict[str, Callable[[str], str]] = {
    "truncated": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "NaN": lambda text: text.replace("1.01", "NaN"),
    "infinite": lambda text: text.replace("1.01", "1e999"),
    "conflict": lambda text: f"<<<<<<< HEAD\n{text}",
    "newer": _changed(schema=99),
    "no schema": _changed(schema=None),
    "unknown field": _changed(colour="red"),
    "text for a number": lambda text: text.replace('"samples": 300', '"samples": "300"'),
    "another environment": _changed(environment="elsewhere"),
    "another case": _changed(case="decoder"),
    "no sessions": _changed(sessions=[]),
    "no workers": _changed(sessions=[{"id": "x", "created_at": "x", "sha": "x", "workers": []}]),
    "another commit": _changed(sha="b" * 40),
    "a list": lambda text: f"[{text}]",
    "deep": lambda text: "[" * 100_000,
    "not text": lambda text: text.replace("encoder", "\udcff"),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_file_is_named_and_never_no_baseline(store: BaselineStore, how: str) -> None:
    (path,) = store.save_run(run(CASE), "one")
    text = DAMAGES[how](path.read_text(encoding="utf-8"))
    broken = text.encode("utf-8", "surrogateescape")
    path.write_bytes(broken)
    for reading in (
        lambda: store.load(HERE.key, CASE),
        lambda: store.load_all(HERE.key),
        lambda: store.save_run(run(CASE), "two"),
    ):
        with pytest.raises(DamagedFile) as caught:
            reading()
        assert str(path) in caught.value.message
        assert "perfci baseline update" in caught.value.advice
    assert path.read_bytes() == broken


def test_a_damaged_baseline_does_not_cost_the_other_cases(store: BaselineStore) -> None:
    bad, _ = store.save_run(run("a", "b"), "one")
    bad.write_text("{", encoding="utf-8")
    with pytest.raises(DamagedFile):
        store.save_run(run("a", "b", "c"), "two")
    assert len(store.load(HERE.key, "b").sessions) == 2
    assert store.load(HERE.key, "c") is not None


def damaged_everywhere(store: BaselineStore, key: str) -> DamagedFile:
    """Return the error that listing, and reading for a check, both end with."""
    with pytest.raises(DamagedFile) as caught:
        store.environments()
    with pytest.raises(DamagedFile) as again:
        store.load_all(key)
    assert again.value.message == caught.value.message
    return caught.value


def test_an_environment_without_its_facts_is_damaged_and_never_no_baseline(
    store: BaselineStore,
) -> None:
    store.save_run(run("a"), "one")
    facts = store._folder / HERE.key / "environment.json"
    facts.unlink()
    error = damaged_everywhere(store, HERE.key)
    assert str(facts) in error.message
    assert "missing" in error.message
    assert "git" in error.advice
    assert len(store.remove(HERE.key)) == 1
    assert store.environments() == ()


@pytest.mark.parametrize("target", ["/dev/zero", "/proc/self/environ", "elsewhere", "nowhere"])
def test_a_link_out_of_the_folder_is_damaged_and_not_followed(
    store: BaselineStore, tmp_path: Path, target: str
) -> None:
    (path,) = store.save_run(run(CASE), "one")
    if target == "elsewhere":
        path.rename(tmp_path / target)
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / target)
    for reading in (
        lambda: store.load(HERE.key, CASE),
        lambda: store.load_all(HERE.key),
        lambda: store.save_run(run(CASE), "two"),
    ):
        with pytest.raises(DamagedFile, match="link"):
            reading()


def test_what_is_no_regular_file_is_damaged_and_does_not_hang(store: BaselineStore) -> None:
    (path,) = store.save_run(run(CASE), "one")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OutsideError, match="not a regular file"):
        store.load_all(HERE.key)


def test_a_file_too_large_for_a_baseline_is_not_read(store: BaselineStore) -> None:
    (path,) = store.save_run(run(CASE), "one")
    os.truncate(path, 1 << 40)
    with pytest.raises(OutsideError, match="64 MiB"):
        store.load_all(HERE.key)


_WRITER = """
import sys
from pathlib import Path
from perfci.baselines import BaselineStore
from tests.baselines.runs import run
store = BaselineStore(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    store.save_run(run("a", "b"), f"{sys.argv[2]}-{number}")
    print("saved", flush=True)
"""


def writer(folder: Path, name: str, times: int) -> subprocess.Popen[str]:
    """Start a process that adds sessions once its standard input says so."""
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(folder), name, str(times)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_eight_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writers = [writer(tmp_path, f"w{number}", 1) for number in range(8)]
    for process in writers:
        assert process.stdout.readline() == "ready\n"
    for process in writers:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in writers:
        process.communicate(timeout=60)
        assert process.returncode == 0
    wanted = {f"w{number}-0" for number in range(8)}
    stored = list(BaselineStore(tmp_path).load_all(HERE.key))
    assert stored
    for baseline in stored:
        assert {session.id for session in baseline.sessions} == wanted


def test_a_killed_writer_leaves_a_whole_file_and_its_rest_is_swept(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    for times in (1, 2, 3, 5):
        process = writer(tmp_path, "w", 10_000)
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        for _ in range(times):
            assert process.stdout.readline() == "saved\n"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        store.load_all(HERE.key)
    leftover = tmp_path / HERE.key / ".perfci-abc"
    leftover.write_text("half", encoding="utf-8")
    store.save_run(run("a", "b"), "last")
    assert {path.suffix for path in (tmp_path / HERE.key).iterdir()} == {".json"}
    assert len(store.load_all(HERE.key)) == 2


def test_a_writer_waits_for_the_lock_and_survives_the_removal(tmp_path: Path) -> None:
    from perfci.baselines import locked

    store = BaselineStore(tmp_path)
    store.save_run(run("a"), "one")
    folder = tmp_path / HERE.key
    with locked(folder):
        process = writer(tmp_path, "w", 1)
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert [session.id for session in store.load(HERE.key, "a").sessions] == ["w-0"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB. Needs the right to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    done = subprocess.run(mounting, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # whoever looks in


def test_a_full_disk_leaves_the_old_file_whole(small_disk: Path) -> None:
    store = BaselineStore(small_disk / "baselines")
    (path,) = store.save_run(run(CASE), "one")
    before = path.read_bytes()
    with pytest.raises(OSError, match="No space"), (small_disk / "filler").open("wb") as filler:
        filler.write(b"x" * (1 << 20))
    with pytest.raises(OutsideError, match="No space") as caught:
        store.save_run(run(CASE), "two")
    assert "Make room" in caught.value.advice
    with pytest.raises(OutsideError, match="No space"):
        store.require_writable()
    assert path.read_bytes() == before
    (small_disk / "filler").unlink()
    assert len(store.load(HERE.key, CASE).sessions) == 1
    assert not list(path.parent.glob(".writing-*"))


def test_a_read_only_disk_is_said_before_anything_is_measured(small_disk: Path) -> None:
    store = BaselineStore(small_disk / "baselines")
    (path,) = store.save_run(run(CASE), "one")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for writing in (
        store.require_writable,
        lambda: store.save_run(run(CASE), "two"),
        lambda: store.remove(HERE.key),
    ):
        with pytest.raises(OutsideError, match="Read-only") as caught:
            writing()
        assert "choose another folder" in caught.value.advice
    assert store.load(HERE.key, CASE) is not None
    assert path.exists()


def test_perfcis_own_baseline_is_of_its_own_benchmarks() -> None:
    store = BaselineStore(ROOT / "baselines")
    for key in store.environments():
        cases = {baseline.case for baseline in store.load_all(key)}
        assert cases == {"help_of_all", "help_of_compare"}
    assert store.environments()
