"""The benchmark is a coroutine."""
import perfci  # noqa: E402

@perfci.benchmark
async def wrong():
    return lambda: None
