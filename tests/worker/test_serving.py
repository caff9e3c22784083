"""``perfci.generate`` and ``perfci.server``: what requests are like, and what fails is named."""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
from array import array
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import perfci
from perfci.api.serving.load import arrivals
from perfci.errors import BenchmarkError
from tests.builders.project import assert_ends
from tests.lacking import lacking
from tests.worker.driver import Bench, Driver

pytestmark = pytest.mark.processes

SERVE = Path(__file__).parent.parent / "data" / "serving" / "serve.py"
HEAD = "import asyncio, sys, time\nimport perfci\n\n"
CASE = "@perfci.benchmark\ndef case():\n"
FIRST, BETWEEN = "time_to_first_token", "inter_token_latency_p50"
STREAMS = {
    "a generator": "def stream():\n    for one in range(5):\n        yield one\n",
    "an async generator": (
        "async def stream():\n    for one in range(5):\n"
        "        await asyncio.sleep(0)\n        yield one\n"
    ),
    "a coroutine of one": (
        "async def tokens():\n    for one in range(5):\n        yield one\n"
        "async def stream():\n    return tokens()\n"
    ),
}


@pytest.fixture
def bench(forked_bench: Bench) -> Bench:
    return forked_bench


def served(bench: Bench, how: str = "well", more: str = "") -> str:
    """Return a benchmark's source that asks a server of tokens that does it so."""
    shutil.copy(SERVE, bench.root)
    line = f"[sys.executable, 'serve.py', '{{port}}', '--how', {how!r}]"
    return (
        f"{HEAD}{CASE}    server = perfci.server({line}, ready='/health', timeout=5)\n"
        f"    return perfci.generate(server.url + '/v1', body={{'prompt': 'a'}}{more})\n"
    )


def found(measured: dict[str, Any]) -> set[str]:
    """Return the metrics that there are numbers of."""
    return {*measured["values"], *measured["observed_ns"]}


@pytest.mark.parametrize("load", ["", "concurrency=2, requests=3", "rate=2000.0, requests=3"])
@pytest.mark.parametrize("stream", STREAMS)
def test_whatever_yields_tokens_is_consumed_to_its_end(
    bench: Bench, stream: str, load: str
) -> None:
    measured = bench.measure(
        f"{HEAD}{STREAMS[stream]}{CASE}    return perfci.generate(stream, {load})\n"
    )
    assert measured["values"]["tokens_per_request"] == 5.0
    assert {FIRST, BETWEEN, "end_to_end", "tokens_per_second"} <= found(measured)


@pytest.mark.parametrize("load", ["", "concurrency=2, requests=3", "rate=2000.0, requests=3"])
@pytest.mark.parametrize("stream", STREAMS)
def test_requests_are_timed_by_a_real_clock_where_the_benchmark_has_replaced_it(
    bench: Bench, stream: str, load: str
) -> None:
    slow = STREAMS[stream].replace("        yield", "        sleep(0.002)\n        yield")
    replaced = "from time import sleep\ntime.perf_counter = lambda: 5.0\n"
    source = f"{HEAD}{replaced}{slow}{CASE}    return perfci.generate(stream, {load})\n"
    observed = bench.measure(source)["observed_ns"]
    took_ns = array("q", base64.b64decode(observed["end_to_end"]))
    assert min(took_ns) >= 5 * 0.002e9


@pytest.mark.parametrize("load", ["", ", concurrency=4", ", rate=500.0, requests=4"])
def test_an_endpoint_is_asked_and_its_server_is_gone_with_the_worker(
    bench: Bench, load: str
) -> None:
    measured = bench.measure(served(bench, more=load))
    assert measured["values"]["tokens_per_request"] == 8.0  # OpenAI's first and last aren't tokens
    assert {FIRST, BETWEEN} <= found(measured)
    assert measured["values"]["children_cpu_time"] > 0  # the server's


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("500", "request_failed", "answered 500 Out of cache"),
        ("no tokens", "no_tokens", "without a token"),
        ("json", "bad_stream", "answered application/json, not text/event-stream"),
        ("malformed", "bad_stream", "isn't a server-sent event: '<p>502 Bad Gateway</p>'"),
        ("half", "bad_stream", "an event that isn't JSON"),
        ("error", "bad_stream", "no blocks left"),
        ("cut off", "bad_stream", "without `data: [DONE]`"),
        ("dies", "bad_stream", "was ended by signal 9 (Killed):\ndying of 4 tokens"),
        ("no health", "server_not_ready", "not ready within 0.3 s"),
    ],
)
def test_a_server_that_serves_badly_fails_the_case(
    bench: Bench, how: str, kind: str, said: str
) -> None:
    source = served(bench, how)
    if how == "no health":
        source = source.replace("timeout=5", "timeout=0.3")
    failed = bench.failure(source)
    assert (failed["kind"], said in failed["message"]) == (kind, True), failed["message"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("['no-such-server']", "ended with exit code 127:\nno-such-server: No such file"),
        ("['sh', '-c', 'seq 12; exit 3']", "ended with exit code 3:\n3\n4\n"),
        ("['sleep', '9'], ready='listening', timeout=0.2", "not ready within 0.2 s"),
    ],
)
def test_a_server_that_does_not_start_is_named_with_its_last_lines(
    bench: Bench, arguments: str, said: str
) -> None:
    failed = bench.failure(f"{HEAD}{CASE}    perfci.server({arguments})\n")
    assert failed["kind"] in {"server_ended", "server_not_ready"}
    assert said in failed["message"]


def test_a_port_at_which_another_server_answers_is_refused(bench: Bench) -> None:
    """Head's own would fail to bind it, while base's answered for both."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as other:
        Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}/"
        failed = bench.failure(f"{HEAD}{CASE}    perfci.server(['sleep', '9'], ready={url!r})\n")
        other.shutdown()
    assert failed["kind"] == "port_in_use"
    assert "`{port}`" in failed["message"]


@pytest.mark.parametrize("ready", ["None", "'serving on'", "'http://127.0.0.1:{port}/'"])
def test_a_server_is_ready_when_it_takes_connections_says_so_or_answers(
    bench: Bench, ready: str
) -> None:
    script = (
        "import http.server as h, os\\n"
        "one = h.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), h.SimpleHTTPRequestHandler)\\n"
        "print('serving on', one.server_port)\\none.serve_forever()"
    )
    started = f"perfci.server([sys.executable, '-c', '''{script}'''], ready={ready}, timeout=20)"
    assert bench.measure(f"{HEAD}{CASE}    {started}\n    return int\n")["samples_ns"]


def test_a_server_dies_with_a_worker_that_is_killed(bench: Bench, tmp_path: Path) -> None:
    shutil.copy(SERVE, bench.root)
    path = bench.write(
        f"{HEAD}{CASE}    server = perfci.server([sys.executable, 'serve.py', '{{port}}'])\n"
        "    open('pid', 'w').write(str(server.pid))\n    return int\n"
    )
    with Driver(bench.order(path, "case"), log=tmp_path / "log") as worker:
        worker.wait_for("ready")
        os.kill(worker.process.pid, signal.SIGKILL)
        assert_ends(int((bench.root / "pid").read_text()))


@pytest.mark.parametrize(
    ("stream", "kind", "said"),
    [
        ("[1, 2]", "not_a_stream", "the stream is [1, 2]"),
        ("iter(())", "no_tokens", "without a token"),
        ("iter(int, 1)", "endless_stream", "more than 1,000,000 tokens"),
        ("None", "not_a_stream", "return a generator"),
    ],
)
def test_what_is_no_stream_of_tokens_fails_the_case(
    bench: Bench, stream: str, kind: str, said: str
) -> None:
    failed = bench.failure(f"{HEAD}{CASE}    return perfci.generate(lambda: {stream})\n")
    assert (failed["kind"], said in failed["message"]) == (kind, True), failed["message"]


@pytest.mark.parametrize("shared", [False, True])
def test_a_server_runs_on_other_cores_than_its_client(bench: Bench, shared: bool) -> None:
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        lacking("a machine of one core has none for the client")
    script = (
        "import os, time\nprint(*sorted(os.sched_getaffinity(0)))\n"
        "print(os.environ['OMP_NUM_THREADS'])\nprint('up')\ntime.sleep(60)"
    )
    option = "client_cores=0, " if shared else ""
    source = (
        f"{HEAD}import os\nfrom pathlib import Path\n{CASE}"
        f"    line = [sys.executable, '-c', {script!r}]\n"
        f"    servers = [perfci.server(line, {option}ready='up') for _ in range(2)]\n"
        "    own = ' '.join(map(str, sorted(os.sched_getaffinity(0))))\n"
        "    Path('cores').write_text('\\n'.join([own, *(one.printed for one in servers)]))\n"
        "    return int\n"
    )
    bench.measure(source, env={"OMP_NUM_THREADS": str(cores)})
    client, *servers = (bench.root / "cores").read_text().split("\nup\n")[0].split("\n")
    assert bool(set(client.split()) & set(servers[0].split())) is shared
    assert servers[1] == str(cores if shared else cores - 1)
    both = (bench.root / "cores").read_text().split("\n")
    assert both[1:4] == both[4:7]  # a second server has the cores of the first


def test_arrivals_are_those_of_their_seed_at_the_rate() -> None:
    drawn = arrivals(100.0, 5_000, seed=3)
    assert drawn == arrivals(100.0, 5_000, seed=3)
    assert drawn != arrivals(100.0, 5_000, seed=4)
    assert 45.0 < drawn[-1] < 55.0


@pytest.mark.parametrize(
    ("stream", "options", "right"),
    [
        (iter(()), {}, "a function that returns a generator or an http:// URL"),
        ("ftp://127.0.0.1", {}, "an http:// URL"),
        ("https://127.0.0.1/", {}, "an http:// URL"),
        ("http:///v1", {}, "an http:// URL"),
        (iter, {"concurrency": 0}, "1 or more"),
        (iter, {"requests": 0}, "1 or more"),
        (iter, {"concurrency": 4, "requests": 2}, "one for each at least"),
        (iter, {"rate": 0}, "more than 0 a second"),
        (iter, {"rate": 2.0, "concurrency": 4}, "not both"),
    ],
)
def test_what_is_no_load_is_refused_where_it_is_written_with_what_is_allowed(
    stream: Any, options: dict[str, Any], right: str
) -> None:
    where = r"test_serving\.py:\d+: perfci\.generate: "
    with pytest.raises(BenchmarkError, match=f"{where}.*{re.escape(right)}"):
        perfci.generate(stream, **options)


def test_a_server_whose_command_is_a_text_is_refused_where_it_is_written() -> None:
    with pytest.raises(BenchmarkError, match=r"test_serving\.py:\d+: perfci\.server: .*not a list"):
        perfci.server("sleep 9")
