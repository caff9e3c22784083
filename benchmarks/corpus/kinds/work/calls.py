"""Calls of one process. Each does ``units`` of one kind of work, one after the other."""

import json

import torch

from work.planted import units


def tiny():
    count = units(400)

    def call():
        total = 0
        for number in range(count):
            total += number & 7
        return total

    return call


def python():
    rows = [{"id": number, "name": f"row {number}", "values": [1.5] * 8} for number in range(100)]
    texts = [json.dumps(rows[number % 100]) for number in range(units(100))]
    return lambda: [json.loads(text)["id"] for text in texts]


def repeated(layer, x, count):
    """Return a call that applies the layer ``count`` times."""

    @torch.no_grad()
    def call():
        y = x
        for _ in range(count):
            y = layer(y)
        return y

    return call


def eager():
    return repeated(torch.nn.Linear(64, 64), torch.randn(4, 64), units(100))


def training():
    weight, x = torch.randn(32, 32, requires_grad=True), torch.randn(8, 32)
    count = units(100)

    def call():
        for _ in range(count):
            weight.grad = None
            (x @ weight).relu().sum().backward()
        return weight.grad

    return call


def memory_bound():
    rows = torch.ones(units(100), 1 << 16)  # 25 MiB: beyond the caches of a core
    return lambda: rows.mul_(1.0)


def allocating():
    count = units(100)
    return lambda: [torch.zeros(1 << 13) for _ in range(count)]


def generate():
    width, count = 48, units(100)
    embed, head = torch.randn(64, width), torch.randn(width, 64)
    project = torch.nn.Linear(width, 3 * width)

    @torch.no_grad()
    def call():
        token, tokens = 0, []
        keys, values = torch.empty(count, width), torch.empty(count, width)
        for at in range(count):
            q, keys[at], values[at] = project(embed[token]).chunk(3)
            weights = torch.softmax(keys[: at + 1] @ q / width**0.5, 0)
            token = int(torch.argmax(weights @ values[: at + 1] @ head))
            tokens.append(token)
        return tokens

    return call


def tails():
    """One call in eight does twice the work, and what is planted on top."""
    calls, usual, rare = [0], 100, units(200, "tails")
    x = torch.randn(32, 32)

    def call():
        calls[0] += 1
        y = x
        for _ in range(rare if calls[0] % 8 == 0 else usual):
            y = torch.tanh(y)
        return y

    return call


def convolution():
    layer = torch.nn.Conv2d(4, 4, 3, padding=1)
    return repeated(layer, torch.randn(1, 4, 16, 16), units(100))


def attention():
    q = torch.randn(1, 2, 16, 16)
    count = units(100)
    return lambda: [torch.nn.functional.scaled_dot_product_attention(q, q, q) for _ in range(count)]


def memory():
    """A call needs 100 pieces of half a MiB at once, and what is planted on top."""
    count = units(100, "memory")
    return lambda: sum(float(piece[0]) for piece in [torch.ones(1 << 17) for _ in range(count)])
