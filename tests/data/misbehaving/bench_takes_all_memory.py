"""Takes memory without end; `memory_limit` stops it."""
import perfci

@perfci.benchmark
def misbehaving():
    kept = []
    while True:
        kept.append(bytearray(64 << 20))
