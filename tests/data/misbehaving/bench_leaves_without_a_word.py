"""Ends the process itself, as if all were well."""
import os  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    os._exit(0)
