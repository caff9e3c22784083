"""Whether a PostgreSQL server refused a connection, so that trying again would be refused again.

psycopg hands on no SQLSTATE of a connection that was never made. What the server said is in the
language of its ``lc_messages``, which a client can't choose before it is let in. So the shape of
libpq's message tells that the server answered at all, and the password's part in it tells most of
the rest; English text decides where no password was asked for.
"""

from __future__ import annotations

import re

_REFUSING_STATES = {"28P01", "28000", "3D000"}
_SERVER_ANSWERED = re.compile(r"failed: [^\s:][^:\n]*:  \S")
"""libpq puts two spaces after the severity, in every language, and nowhere in errors of its own."""
_NOT_NOW = re.compile(
    r"the database system is|too many|connection slots|terminating connection|due to timeout"
)
_REFUSED = re.compile(
    r"does not exist|no pg_hba\.conf entry|authentication failed|is not permitted to log in"
    r"|permission denied for database|is not currently accepting connections"
)
_UNUSABLE = re.compile(r"invalid port number|invalid \w+ value|invalid connection option")


def is_refused(error: BaseException) -> bool:
    """Whether the server won't let this user in, or libpq can't read the address.

    ``error`` is the driver's. A server that is starting, stopping or full says so for now only.
    """
    import psycopg

    if not isinstance(error, psycopg.Error):
        return False
    if error.sqlstate is not None:
        return error.sqlstate in _REFUSING_STATES
    said, attempt = str(error), error.pgconn
    if _UNUSABLE.search(said) or (attempt is not None and attempt.needs_password):
        return True
    if attempt is None or not _SERVER_ANSWERED.search(said) or _NOT_NOW.search(said):
        return False
    # a server that is starting or full says so before it asks for a password
    return attempt.used_password or _REFUSED.search(said) is not None
