"""The decorator stands on a class."""
import perfci

@perfci.benchmark()
class Encoder:
    pass
