"""The hash of the files that define a benchmark. Comments in Python files don't count."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections.abc import Iterable
from pathlib import Path


def source_hash(files: Iterable[str | Path]) -> str:
    """Return a hash of these files, which changes if their code changes."""
    digest = hashlib.sha256()
    for file in map(Path, files):
        content = file.read_bytes()
        digest.update(_without_comments(content) if file.suffix == ".py" else content)
    return digest.hexdigest()[:16]


def _without_comments(source: bytes) -> bytes:
    """Return Python source without comments, the blanks before them, and lines that only have one.

    Source that can't be read as Python is returned as it is.
    """
    try:
        text = source.decode()
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (UnicodeDecodeError, SyntaxError, tokenize.TokenError):
        return source
    lines = text.split("\n")
    for kind, _, (line, column), _, _ in reversed(tokens):
        if kind == tokenize.COMMENT:
            code = lines[line - 1][:column].rstrip()
            lines[line - 1 : line] = [code] if code else []
    return "\n".join(lines).encode()
