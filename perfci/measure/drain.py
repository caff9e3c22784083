"""Reading what a worker prints, without end, keeping only its beginning and its end."""

from __future__ import annotations

import os
import threading
from collections import deque

_CHUNK = 1 << 16


class Drain:
    """Empties one pipe in a thread, so that a printing benchmark never blocks or fills a disk.

    At most ``head`` + ``tail`` bytes are kept.
    """

    def __init__(self, descriptor: int, head: int = 1 << 16, tail: int = 1 << 16) -> None:
        self._descriptor = descriptor
        self._head_limit = head
        self._tail_limit = tail
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="perfci-drain", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return what was kept so far."""
        with self._lock:
            dropped = f"\n… {self._dropped:,} bytes left out …\n".encode() if self._dropped else b""
            return (bytes(self._head) + dropped + b"".join(self._tail)).decode(errors="replace")

    def close(self, wait_s: float) -> None:
        """Stop reading. A grandchild may hold the pipe open, so the end isn't waited for long."""
        self._thread.join(wait_s)
        if not self._thread.is_alive():
            os.close(self._descriptor)

    def _run(self) -> None:
        while chunk := os.read(self._descriptor, _CHUNK):
            with self._lock:
                self._keep(chunk)

    def _keep(self, chunk: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._dropped += gone
