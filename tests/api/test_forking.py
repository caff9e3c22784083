"""Whether a process may fork after what it has imported: asked in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ASKED = "from perfci.api.forking import unforkable_reason\nprint(unforkable_reason())\n"
THREADS = "import os\nthreads = lambda: len(os.listdir('/proc/self/task'))\n"
DRIVER = """
#include <unistd.h>
static int initialised_in;
int cuInit(unsigned flags) {
  if (initialised_in && initialised_in != getpid()) return 3;
  initialised_in = getpid();
  return 0;
}
"""


NVML = """
#include <pthread.h>
#include <unistd.h>
static int users;
static pthread_t thread;
static void *wait_for_events(void *unused) { pause(); return unused; }
int nvmlInitWithFlags(unsigned flags) {
  if (!users++) pthread_create(&thread, 0, wait_for_events, 0);
  return 0 * flags;
}
int nvmlInit(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) {
  if (!users) return 1;
  if (!--users) { pthread_cancel(thread); pthread_join(thread, 0); }
  return 0;
}
int nvmlDeviceGetCount_v2(int *count) { *count = 1; return 0; }
"""


def answer(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CUDA driver that knows, as the real one does, that it is in a fork of its process."""
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    command = ["gcc", "-shared", "-fPIC", "-xc", "-", "-Wl,-soname,libcuda.so.1", "-o", library]
    subprocess.run(command, input=DRIVER, text=True, check=True)
    return library


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of an NVML that keeps a thread from its first initialisation to the last end."""
    folder = tmp_path_factory.mktemp("nvml")
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-pthread",
        "-xc",
        "-",
        "-o",
        folder / "libnvidia-ml.so.1",
    ]
    subprocess.run(command, input=NVML, text=True, check=True)
    return str(folder)


@pytest.mark.torch
def test_the_thread_of_an_nvml_that_torch_asked_is_ended_before_the_fork(nvml: str) -> None:
    counted = (
        "import torch\nfor _ in range(3):\n    assert torch.cuda._raw_device_count_nvml() == 1\n"
    )
    program = f"{THREADS}{counted}assert threads() > 1\n{ASKED}{counted}"
    assert answer(program, LD_LIBRARY_PATH=nvml, OPENBLAS_NUM_THREADS="1") == ""


def test_a_driver_that_is_initialised_is_one_and_one_that_is_only_loaded_is_none(
    driver: Path,
) -> None:
    load = f"import ctypes\ncuda = ctypes.CDLL({str(driver)!r})\n"
    assert answer(f"{load}{ASKED}") == ""
    assert answer(f"{load}cuda.cuInit(0)\n{ASKED}") == "initialised CUDA"


def test_a_fork_that_hangs_is_given_up() -> None:
    program = (
        "import time\nfrom perfci.api import forking\n"
        "forking._TRIAL_NS, forking._cuda_is_lost = 50_000_000, lambda: time.sleep(600)\n"
    )
    assert answer(f"{program}{ASKED}") == "can't be forked: a trial fork did not end"


def test_a_fork_that_fails_does_not_count_as_one_that_hangs() -> None:
    program = "from perfci.api import forking\nforking._cuda_is_lost = lambda: 1 / 0\n"
    assert answer(f"{program}{ASKED}").endswith("can't be forked: a trial fork failed")


@pytest.mark.gpu
@pytest.mark.torch
@pytest.mark.parametrize(
    ("program", "reasons"),
    [
        ("import torch\ntorch.cuda.is_available()\n", {""}),
        ("import torch\ntorch.ones(1, device='cuda')\n", {"initialised CUDA"}),
        ("import ctypes\nctypes.CDLL('libcuda.so.1').cuInit(0)\n", {"initialised CUDA"}),
    ],
    ids=["NVML asked", "torch's context", "the driver alone"],
)
def test_a_real_driver_shows_whether_it_was_initialised(program: str, reasons: set[str]) -> None:
    assert answer(program + ASKED, PYTORCH_NVML_BASED_CUDA_CHECK="1") in reasons
