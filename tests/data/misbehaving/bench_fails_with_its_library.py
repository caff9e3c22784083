"""Does what its library does, which is another thing on each side."""
import kind
import perfci

@perfci.benchmark
def in_setup():
    kind.prepare()
    return int

@perfci.benchmark
def in_a_call():
    return kind.call

@perfci.benchmark
def by_a_signal():
    kind.die()
    return int

@perfci.benchmark(timeout=2)
def by_hanging():
    kind.wait()
    return int
