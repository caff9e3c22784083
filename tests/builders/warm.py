"""A process that has imported torch, or a worker's modules alone, and forks what begins there.

Run as a file it serves its end of a socket pair. A message asks for a worker, and comes with its
pipes and its log, or for a program, and comes with its standard output. The answer is the process
that was forked; another message later says how that ended.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

_MESSAGE = 1 << 17
_START_S = 120.0


class Warm:
    """The process's other end."""

    def __init__(self, *, torch: bool = True) -> None:
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.settimeout(_START_S)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno()), *["torch"] * torch],
                pass_fds=(theirs.fileno(),),
            )
        self._ended: dict[int, int] = {}

    def start(self, environment: Mapping[str, str], folder: str, *ends: int) -> WarmWorker:
        """Fork a worker; ``ends`` are its orders, its results and its log."""
        asked = {"environment": dict(environment), "folder": folder}
        return WarmWorker(self, self._forked(asked, ends))

    def run(self, program: str, *arguments: str) -> str:
        """Return what a Python program prints, which has to end well."""
        read, write = os.pipe()
        pid = self._forked({"program": program, "arguments": arguments}, (write,))
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as output:
            printed = output.read()
        assert self.ended(pid, _START_S) == 0, printed
        return printed

    def _forked(self, asked: dict[str, Any], ends: Sequence[int]) -> int:
        socket.send_fds(self._link, [json.dumps(asked).encode()], ends)
        while "pid" not in (answer := self._answer()):
            pass
        self._ended.pop(answer["pid"], None)  # of an earlier process that nobody waited for
        return answer["pid"]

    def ended(self, pid: int, within_s: float | None) -> int:
        """Return the exit code of process ``pid``, once: a later process may get the same pid."""
        self._link.settimeout(within_s)
        while pid not in self._ended:
            self._answer()
        self._link.settimeout(_START_S)
        return os.waitstatus_to_exitcode(self._ended.pop(pid))

    def _answer(self) -> dict[str, int]:
        said = self._link.recv(_MESSAGE)
        assert said, "the warm process is gone"
        answer: dict[str, int] = json.loads(said)
        if "ended" in answer:
            self._ended[answer["ended"]] = answer["status"]
        return answer

    def close(self) -> None:
        self._link.close()
        self._process.wait(_START_S)


class WarmWorker:
    """A process of ``Warm``, with as much of ``Popen`` as a driver uses."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self._warm = warm
        self.pid = pid
        self._code: int | None = None

    def wait(self, within_s: float | None = None) -> int:
        if self._code is None:
            self._code = self._warm.ended(self.pid, within_s)
        return self._code


def _import_torch() -> None:
    """Import torch, and what a first compilation does."""
    import torch
    import torch._dynamo

    torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(3))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def _serve(link: socket.socket) -> NoReturn:
    import perfci.worker.main  # noqa: F401 (each worker's first import)

    children: dict[int, int] = {}
    while True:
        for ready in select.select([link, *children], [], [])[0]:
            if ready is not link:
                pid = children.pop(ready)
                os.close(ready)
                _, status = os.waitpid(pid, 0)
                link.send(json.dumps({"ended": pid, "status": status}).encode())
                continue
            text, ends, _, _ = socket.recv_fds(link, _MESSAGE, 3)
            if not text:
                os._exit(0)  # torch takes long to leave
            pid = os.fork()
            if not pid:
                link.close()
                asked = json.loads(text)
                if "program" in asked:
                    _run(asked["program"], asked["arguments"], *ends)
                _live(asked, *ends)
            for end in ends:
                os.close(end)
            children[os.pidfd_open(pid)] = pid
            link.send(json.dumps({"pid": pid}).encode())


def _run(program: str, arguments: list[str], output: int) -> NoReturn:
    os.dup2(output, 1)
    sys.argv = ["-c", *arguments]
    sys.path.insert(0, "")
    code = 1
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def _live(asked: dict[str, Any], orders: int, results: int, log: int) -> NoReturn:
    from perfci.worker.main import main
    from perfci.worker.protocol import WorkerDescriptors

    now = time.monotonic_ns()
    os.setsid()
    os.chdir(asked["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    os.environ.clear()
    os.environ.update(asked["environment"])
    main(WorkerDescriptors(orders, results, -1), now, now)


if __name__ == "__main__":
    if "torch" in sys.argv:
        _import_torch()
    with socket.socket(fileno=int(sys.argv[1])) as end:
        _serve(end)
