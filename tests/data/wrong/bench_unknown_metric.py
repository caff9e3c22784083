"""metrics names what is no metric."""
import perfci

@perfci.benchmark(metrics=["latency_p5"])
def wrong():
    return lambda: None
