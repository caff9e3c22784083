"""Ends the process itself, as if all were well."""
import os
import perfci

@perfci.benchmark
def misbehaving():
    os._exit(0)
