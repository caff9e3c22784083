"""A value's text can't be part of an id."""
import perfci

@perfci.benchmark(shape=[(1, 2)])
def wrong(shape):
    return lambda: None
