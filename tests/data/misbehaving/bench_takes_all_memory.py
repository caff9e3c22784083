"""Takes memory without end; `memory_limit` stops it."""
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    kept = []
    while True:
        kept.append(bytearray(64 << 20))
