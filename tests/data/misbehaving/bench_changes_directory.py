"""Changes the directory: perfci's own paths must not depend on it."""
import os  # noqa: E402
import perfci  # noqa: E402

@perfci.benchmark
def well_behaved():
    os.chdir("/")
    return lambda: sum(range(100))
