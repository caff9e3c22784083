"""metrics names what is no metric."""
import perfci  # noqa: E402

@perfci.benchmark(metrics=["latency_p5"])
def wrong():
    return lambda: None
