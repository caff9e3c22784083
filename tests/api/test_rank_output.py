"""What is read of a rank that hangs: its stack, however late that comes."""

from __future__ import annotations

import os
from threading import Timer

from perfci.api.children import ChildOutput
from perfci.api.distributed.group import place_in_stack

STACK = b"""warming up
Current thread 0x00007f (most recent call first):
  File "/work/bench_a.py", line 7 in step
  File "/work/bench_a.py", line 2 in case
"""


def test_a_stack_that_comes_late_is_waited_for() -> None:
    source, sink = os.pipe()
    output = ChildOutput(os.fdopen(source, "rb"), "rank 1")
    output.start()
    os.write(sink, STACK[:11])
    Timer(0.5, lambda: os.write(sink, STACK[11:])).start()
    assert place_in_stack(output, 30.0) == "/work/bench_a.py:7 in step"
    os.close(sink)


def test_a_rank_that_has_ended_without_a_stack_is_not_waited_for() -> None:
    source, sink = os.pipe()
    output = ChildOutput(os.fdopen(source, "rb"), "rank 1")
    output.start()
    os.write(sink, STACK[:11])
    os.close(sink)
    assert place_in_stack(output, 1e6) == "a place that isn't known"
