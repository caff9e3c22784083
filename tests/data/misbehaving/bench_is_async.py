"""Returns a coroutine function: calling it runs nothing."""
import perfci

@perfci.benchmark
def misbehaving():
    async def work():
        return sum(range(1000))
    return work
