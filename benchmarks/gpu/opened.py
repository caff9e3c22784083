"""Which device files torch opens at each step, and whether a fork can use the card afterwards.

    python -m benchmarks.gpu.opened

A fork server forks only while nothing has begun to use a card: ``perfci`` is what it says
of that, after it has shut NVML down. Each step runs in a fresh
process, with torch's NVML check on and off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

STEPS = {
    "import": "",
    "device_count": "torch.cuda.device_count()",
    "is_available": "torch.cuda.is_available()",
    "device_name": "torch.cuda.get_device_name(0)",
    "tensor": "torch.ones(1, device='cuda')",
}
PROGRAM = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import torch
{step}
links = []
for descriptor in os.listdir("/proc/self/fd"):
    try:
        links.append(os.readlink(f"/proc/self/fd/{{descriptor}}"))
    except OSError:
        pass
devices = sorted(link for link in links if link.startswith("/dev/") and link != "/dev/null")
threads = len(os.listdir("/proc/self/task"))
from perfci.api.forking import unforkable_reason
reason = unforkable_reason()
initialised = torch.cuda.is_initialized()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        answer = "works: " + str(float(torch.ones(1, device="cuda").sum()))
    except BaseException as error:
        answer = " ".join(str(error).split())[:160]
    os.write(writing, answer.encode())
    os._exit(0)
os.close(writing)
answer = os.read(reading, 4096).decode()
os.waitpid(child, 0)
seen = dict(devices=devices, threads=threads, initialised=initialised)
print(json.dumps(dict(seen, fork=answer, perfci=reason)))
"""


def after(step: str, *, nvml: bool) -> dict[str, object]:
    """Return what a process that made ``step`` has open, and what its fork says of the card."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(step=STEPS[step])],
        env=os.environ | {"PYTORCH_NVML_BASED_CUDA_CHECK": str(int(nvml))},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        return {"failed": done.stderr[-400:]}
    return dict(json.loads(done.stdout))


def main() -> None:
    """Print the answers by step and by the setting of torch's NVML check."""
    present = sorted(str(path) for path in Path("/dev").glob("nvidia*"))
    by_check = {
        "cuda": {step: after(step, nvml=False) for step in STEPS},
        "nvml": {step: after(step, nvml=True) for step in ("device_count", "is_available")},
    }
    print(json.dumps({"present": present, "after": by_check}))


if __name__ == "__main__":
    main()
