"""Returns an async generator function: calling it runs nothing."""
import perfci

@perfci.benchmark
def misbehaving():
    async def work():
        yield 1
    return work
