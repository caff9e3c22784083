"""Never comes back from set-up."""
import time
import perfci

@perfci.benchmark(timeout=2)
def misbehaving():
    time.sleep(3600)
