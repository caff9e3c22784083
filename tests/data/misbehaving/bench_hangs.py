"""Never comes back from set-up."""
import time
import perfci  # noqa: E402

@perfci.benchmark(timeout=2)
def misbehaving():
    time.sleep(3600)
