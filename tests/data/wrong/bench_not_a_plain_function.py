"""The benchmark is a coroutine."""
import perfci

@perfci.benchmark
async def wrong():
    return lambda: None
