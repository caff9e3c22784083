"""Whether perfci's figures of a server agree with those of a client that shares no code with it.

    python benchmarks/serving_client.py [--concurrency N …] [--turns N]

The server of the tests has cores of its own; perfci's client and the other one take turns on
another core. The other client is made of asyncio's streams. Prints the ratios of perfci's figures
to its figures: medians of the turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import perfci
from perfci.api.serving.load import RequestLoad

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent / "tests" / "data" / "serving" / "serve.py"
BODY = {"prompt": "one"}
FIGURES = ("time_to_first_token", "inter_token_latency_p50", "end_to_end", "tokens_per_second")


@dataclass
class Client:
    """What a client saw: times in s."""

    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    tokens: int = 0
    took: float = 0.0

    def figures(self) -> dict[str, float]:
        """Return the figures by perfci's names."""
        return {
            "time_to_first_token": statistics.median(self.first),
            "inter_token_latency_p50": statistics.median(self.between),
            "end_to_end": statistics.median(self.whole),
            "tokens_per_second": self.tokens / self.took,
        }


async def asked(url: str, client: Client, requests: int, concurrency: int) -> None:
    """Make requests with so many clients."""
    began = time.perf_counter()
    numbers = iter(range(requests))

    async def one_after_another() -> None:
        for _ in numbers:
            await _request(url, client)

    await asyncio.gather(*(one_after_another() for _ in range(concurrency)))
    client.took += time.perf_counter() - began


async def _request(url: str, client: Client) -> None:
    host, port = url.removeprefix("http://").split(":")
    began = last = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps(BODY)
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    tokens = 0
    async for line in reader:
        now = time.perf_counter()
        if not line.startswith(b"data: {"):
            continue
        if not json.loads(line[6:])["choices"][0]["delta"].get("content"):
            continue
        if tokens:
            client.between.append(now - last)
        else:
            client.first.append(now - began)
        last, tokens = now, tokens + 1
    writer.close()
    client.whole.append(time.perf_counter() - began)
    client.tokens += tokens


def ours(load: RequestLoad) -> dict[str, float]:
    """Return perfci's figures of one call."""
    load.begin()
    load()
    reading = load.reading()
    return {**reading.values, **{name: calls[0] for name, calls in reading.calls.items()}}


def row(url: str, concurrency: int, turns: int) -> list[str]:
    """Return the ratios of perfci's figures to the other's, with so many clients."""
    requests = 4 * concurrency
    load = perfci.generate(url, body=BODY, requests=requests, concurrency=concurrency).call
    assert isinstance(load, RequestLoad)
    mine, others = [], []
    for _ in range(turns):
        mine.append(ours(load))
        client = Client()
        asyncio.run(asked(url, client, requests, concurrency))
        others.append(client.figures())
    ratios = [
        statistics.median(own[name] for own in mine)
        / statistics.median(other[name] for other in others)
        for name in FIGURES
    ]
    return [str(concurrency), *(f"{ratio:.3f}" for ratio in ratios)]


def main() -> None:
    """Measure in turn and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    line = [sys.executable, str(SERVER), "{port}", "--tokens", "16"]
    line += ["--prefill", "0.02", "--decode", "0.004"]
    server = perfci.server(line, ready="/health")
    print("| clients", *FIGURES, "", sep=" | ")
    for concurrency in options.concurrency:
        print("", *row(server.url, concurrency, options.turns), "", sep=" | ", flush=True)


if __name__ == "__main__":
    main()
