"""One call takes longer than the whole budget."""
import time
import perfci

@perfci.benchmark
def slow():
    return lambda: time.sleep(60)
