"""Benchmarks whose work varies for reasons that are no change of code."""

import functools
import gc
import os
import random
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import torch

import perfci


@perfci.benchmark
def seeded_lengths():
    """Draw from a generator that perfci seeds."""
    return lambda: [torch.ones(random.randrange(1, 9)) for _ in range(20)]


@perfci.benchmark
def unseeded_lengths():
    """Draw from the system's entropy."""
    return lambda: [torch.ones(os.urandom(1)[0] + 1) for _ in range(20)]


@perfci.benchmark
def until_the_clock():
    """Work until some time is over."""

    def call():
        end = time.perf_counter() + 0.001
        while time.perf_counter() < end:
            torch.ones(4)

    return call


@perfci.benchmark
def cached():
    """Remember results of earlier calls."""

    @functools.lru_cache(maxsize=64)
    def square(number):
        return number * number

    return lambda: [square(number % 70) for number in range(100)]


@perfci.benchmark
def threads():
    """Share work between threads."""
    pool = ThreadPoolExecutor(2)
    x = torch.randn(64, 64)
    return lambda: list(pool.map(lambda _: (x @ x).sum(), range(16)))


@perfci.benchmark
def collected():
    """Leave cycles whose end calls back."""
    ended = []

    class Node:
        pass

    def call():
        for _ in range(200):
            node = Node()
            node.self = node
            weakref.finalize(node, ended.append, 1)
        gc.collect(0)

    return call


@perfci.benchmark
def by_address():
    """Sort by address, and so stop early in another place each time."""
    objects = [object() for _ in range(200)]

    def call():
        least = id(objects[100])
        return [str(each) for each in objects if id(each) < least]

    return call


@perfci.benchmark
def backward():
    """Run a backward pass, in autograd's own thread."""
    weight, x = torch.randn(32, 32, requires_grad=True), torch.randn(8, 32)

    def call():
        weight.grad = None
        (x @ weight).relu().sum().backward()

    return call
