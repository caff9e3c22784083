"""Whether perfci's figures of a server agree with those of a client that shares no code with it.

    python benchmarks/serving_client.py [--streams N …] [--turns N] [--decode S]

The server has cores of its own; perfci's client and the other one take turns on another core. The
server sleeps before each token, and sends the time with it: what passes until a client has noted
the token is the client's own delay. The other client is made of asyncio's streams. Prints the
ratios of perfci's figures to its figures, medians of the turns, and both clients' delays.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import perfci
from perfci.api.serving.generation import arrivals
from perfci.api.serving.load import RequestLoad

BODY = {"prompt": "one"}
PREFILL_S, TOKENS = 0.02, 16
FIGURES = (
    *("time_to_first_token", "inter_token_latency_p50", "inter_token_latency_p95", "end_to_end"),
    "tokens_per_second",
)


async def serve(port: int, decode_s: float) -> None:
    """Serve tokens, each with the time at which it is sent."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        if "content-length:" in head:
            await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            for number in range(TOKENS):
                await asyncio.sleep(decode_s if number else PREFILL_S)
                event = json.dumps({"choices": [{"text": f"{time.perf_counter()!r} "}]})
                writer.write(f"data: {event}\n\n".encode())
            writer.write(b"data: [DONE]\n\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port, backlog=256)
    await server.serve_forever()


@dataclass
class Client:
    """What a client saw: times in s."""

    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    tokens: int = 0
    took: float = 0.0

    def figures(self) -> dict[str, float]:
        """Return the figures by perfci's names."""
        return {
            "time_to_first_token": statistics.median(self.first),
            "inter_token_latency_p50": statistics.median(self.between),
            "inter_token_latency_p95": statistics.quantiles(self.between, n=20)[18],
            "end_to_end": statistics.median(self.whole),
            "tokens_per_second": self.tokens / self.took,
        }


async def asked(url: str, client: Client, due: Sequence[float]) -> None:
    """Make a request at each of the times, in s from now."""
    began = time.perf_counter()

    async def at(moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - time.perf_counter()))
        await _request(url, client, moment)

    await asyncio.gather(*(at(began + after) for after in due))
    client.took += time.perf_counter() - began


async def one_by_one(url: str, client: Client, requests: int) -> None:
    """Make requests, each after the end of the one before."""
    began = time.perf_counter()
    for _ in range(requests):
        await _request(url, client, time.perf_counter())
    client.took += time.perf_counter() - began


async def _request(url: str, client: Client, due: float) -> None:
    host, port = url.removeprefix("http://").split(":")
    last = due
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps(BODY)
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    tokens = 0
    async for line in reader:
        now = time.perf_counter()
        if not line.startswith(b"data: {"):
            continue
        client.delays.append(now - float(json.loads(line[6:])["choices"][0]["text"]))
        if tokens:
            client.between.append(now - last)
        else:
            client.first.append(now - due)
        last, tokens = now, tokens + 1
    writer.close()
    client.whole.append(time.perf_counter() - due)
    client.tokens += tokens


def delayed(opened: Callable[[], Iterator[Any]], delays: list[float]) -> Callable[[], Any]:
    """Return the stream, which keeps the delay of each token."""

    def stream() -> Iterator[Any]:
        for event in opened():
            delays.append(time.perf_counter() - float(event.text))
            yield event

    return stream


def ours(load: RequestLoad) -> dict[str, float]:
    """Return perfci's figures of one call."""
    load.begin()
    load()
    reading = load.reading()
    return {**reading.values, **{name: calls[0] for name, calls in reading.calls.items()}}


def row(url: str, streams: int, turns: int, decode_s: float) -> list[str]:
    """Return the ratios of perfci's figures to the other's, and both delays' p50 and p99 in ms.

    Several streams are an open loop, which both clients begin at the same times. In a closed loop,
    each client would load the server in its own rhythm.
    """
    requests = max(8, 3 * streams)
    rate = None if streams == 1 else streams / (PREFILL_S + (TOKENS - 1) * decode_s)
    load = perfci.generate(url, body=BODY, requests=requests, rate=rate).call
    due = () if rate is None else arrivals(rate, requests, seed=0)
    assert isinstance(load, RequestLoad)
    delays: list[float] = []
    load.opened = delayed(load.opened, delays)
    mine, others = [], []
    other_delays: list[float] = []
    for _ in range(turns):
        mine.append(ours(load))
        client = Client(delays=other_delays)
        asyncio.run(asked(url, client, due) if due else one_by_one(url, client, requests))
        others.append(client.figures())
    ratios = [
        statistics.median(own[name] for own in mine)
        / statistics.median(other[name] for other in others)
        for name in FIGURES
    ]
    tails = [statistics.quantiles(each, n=100) for each in (delays, other_delays)]
    own_ms = [f"{tail[at] * 1e3:.2f}" for at in (49, 98) for tail in tails]
    return [str(streams), *(f"{ratio:.3f}" for ratio in ratios), *own_ms]


def main() -> None:
    """Measure in turn and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--decode", type=float, default=0.02, help="s before each other token")
    parser.add_argument("--serve", type=int, metavar="PORT", help="be the server")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.decode))
        return
    line = [sys.executable, __file__, "--serve", "{port}", "--decode", str(options.decode)]
    server = perfci.server(line, ready="/")
    delays = (
        f"{of} of {whose}'s delay, ms" for of in ("p50", "p99") for whose in ("perfci", "asyncio")
    )
    print("", "streams", *FIGURES, *delays, "", sep=" | ")
    for streams in options.streams:
        print(
            "", *row(server.url, streams, options.turns, options.decode), "", sep=" | ", flush=True
        )


if __name__ == "__main__":
    main()
