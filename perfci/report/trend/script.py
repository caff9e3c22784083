"""Data as scripts: pages opened from disk may load a script, but may not fetch a file."""

from __future__ import annotations

from typing import Any

import msgspec

_ENTITIES = {
    b"<": rb"\u003c",  # no </script> and no <!-- wherever the text may be pasted
    b">": rb"\u003e",
    b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028",
    "\u2029".encode(): rb"\u2029",
}
"""These occur in JSON only inside strings, so that bytes can be replaced."""


def script(kind: str, name: str, payload: Any) -> bytes:
    """Return a script that hands ``payload`` to the page: ``perfciTrend(kind, name, payload)``.

    A stranger's text belongs in arrays, as a value: as a key, ``__proto__`` would be no name.
    """
    return b"perfciTrend(%s,%s,%s);\n" % (_literal(kind), _literal(name), _literal(payload))


def _literal(value: Any) -> bytes:
    encoded = msgspec.json.encode(value, enc_hook=float)  # numpy's numbers are not Python's
    for character, spelled in _ENTITIES.items():
        encoded = encoded.replace(character, spelled)
    return encoded
