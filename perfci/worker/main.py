"""The worker's life: order, import, set-up, first call, warm-up, bursts, and what came of it."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NoReturn

from perfci.record.worker import SavedModel, WorkOrder
from perfci.worker.loading import prepare_path, way_to, where_it_failed
from perfci.worker.protocol import Channel


class Stage:
    """Where the worker is, told to the parent: a crash is then reported with its stage."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.name = "start"

    def enter(self, name: str) -> None:
        """Tell the parent that ``name`` begins."""
        self.name = name
        self._channel.send("stage", stage=name)


def main(orders: int, results: int, spawned_ns: int, started_ns: int) -> NoReturn:
    """Serve one order and leave by ``os._exit``: an interpreter's exit with torch costs 0.4 s."""
    channel = Channel(orders, results)
    message = channel.receive()
    if message is None:
        os._exit(0)
    order = _order(message)
    stage = Stage(channel)
    code = 0
    try:
        prepare_path(order.python_path)
        if order.case:
            from perfci.worker.measuring import measure

            measure(order, channel, stage, spawned_ns, started_ns, time.monotonic_ns())
        else:
            from perfci.worker.discovery import discover

            stage.enter("import")
            channel.send("discovery", discovery=discover(order))
    except BaseException as error:  # noqa: BLE001 (user code may raise anything: told, not hidden)
        _print(error)
        _flush()
        channel.send(
            "failed",
            stage=stage.name,
            kind=getattr(error, "kind", type(error).__name__),
            message=where_it_failed(error, order.root),
        )
        code = 1
    _flush()
    os._exit(code)


def _order(message: dict[str, Any]) -> WorkOrder:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in message.items()
    }
    fields["saved"] = tuple(
        SavedModel(**{**saved, "modes": tuple(saved["modes"])}) for saved in message["saved"]
    )
    return WorkOrder(**fields)


def _print(error: BaseException) -> None:
    """Put the way through the user's code into the log. The benchmark may have closed stderr."""
    import contextlib

    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(way_to(error))


def _flush() -> None:
    import contextlib

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
