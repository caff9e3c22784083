"""Raises what can't be turned into text, with a `kind` that means something else."""
import perfci

class Unprintable(BaseException):
    kind = object()

    def __str__(self):
        raise RuntimeError

@perfci.benchmark
def misbehaving():
    raise Unprintable
