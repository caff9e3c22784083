"""Returns an async generator function: calling it runs nothing."""
import perfci  # noqa: E402

@perfci.benchmark
def misbehaving():
    async def work():
        yield 1
    return work
