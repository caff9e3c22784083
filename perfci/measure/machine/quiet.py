"""The worker's environment: what keeps a measurement quiet, and secrets out.

Each setting can be switched off, and is one of the environment's facts.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfci.measure.machine.cores import CorePlan
from perfci.model.measuring import Quiet

_ALLOWED = frozenset(
    {
        "CC", "CXX", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL",
        "TERM", "TZ", "USER", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
_RECORDED_PREFIXES = ("CUBLAS_", "GLOO_", "NCCL_", "UCX_", "VLLM_")
"""Begin settings of communication and serving libraries. They decide speed, and so are facts."""
_ALLOWED_PREFIXES = (
    *("LC_", "CUDA_", "NVIDIA_", "TORCH", "PYTORCH_", "TRITON_", "KMP_", "HF_HUB_"),
    *_RECORDED_PREFIXES,
)
_REFUSED = frozenset({"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_LOGS", "TORCHINDUCTOR_CACHE_DIR"})
"""These change what torch does. They are passed only if the user names them."""
_SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")
"""A variable with one of these words in its name is passed only if the user names it."""
_MALLOC = {
    # glibc keeps freed pages. Without these settings, tensors over 128 KiB page-fault on each call
    # in some processes.
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}
_NETWORK_OFF = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def child_environment(
    inherited: Mapping[str, str],
    quiet: Quiet,
    threads: int,
    passed: Sequence[str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return a worker's whole environment: allow-listed names, quiet settings, then ``extra``.

    ``passed`` names further variables that the user lets through. A variable whose name looks like
    a secret's passes only if it is named there.
    """
    environment = {name: value for name, value in inherited.items() if _may_pass(name, passed)}
    environment |= _NETWORK_OFF
    environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # is_available() then opens no context
    if quiet.hash_seed:
        environment["PYTHONHASHSEED"] = "0"
    if quiet.malloc:
        environment |= _MALLOC
    if quiet.threads:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = str(threads)
    if quiet.vec_isa:
        # spares Inductor a probe that takes half as long as a compile
        environment["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    if not quiet.gc:
        environment["PERFCI_GC"] = "1"
    return environment | dict(extra)


def quiet_facts(quiet: Quiet, plan: CorePlan) -> dict[str, str]:
    """Return the settings as facts of the environment."""
    switched = {f"quiet_{name}": str(getattr(quiet, name)).lower() for name in Quiet.__slots__}
    facts = switched | {
        "worker_cores": str(len(plan.workers) or "all"),
        "threads": str(plan.threads),
    }
    if plan.near and plan.workers:  # where they aren't known, environments keep their keys
        facts["cores_near_gpu"] = str(len(plan.near.intersection(plan.workers)))
    return facts


def library_facts(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of communication and serving libraries, as facts of the environment.

    A name that looks like a secret's is left out, even if ``pass_env`` has it.
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(_RECORDED_PREFIXES) and _may_pass(name, ())
    }


def _may_pass(name: str, passed: Sequence[str]) -> bool:
    if name in passed:
        return True
    if name in _REFUSED or any(word in name.upper() for word in _SECRET_WORDS):
        return False
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)


def host_facts() -> dict[str, str]:
    """Return the CPU's model, the architecture and the system, the same on every call."""
    return {
        "system": platform.system().lower(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpu_count": str(os.cpu_count() or 0),
    }


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"
