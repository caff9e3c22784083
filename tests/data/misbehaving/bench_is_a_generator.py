"""Returns a generator function behind a lambda: calling it runs nothing."""
import perfci

def numbers():
    yield from range(1000)

@perfci.benchmark
def misbehaving():
    return lambda: numbers()
