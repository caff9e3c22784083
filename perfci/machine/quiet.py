"""The worker's environment and cores: what keeps a measurement quiet, and secrets out.

Pure but for ``available_cores``. Each setting can be switched off and is part of the
environment's facts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfci.errors import UsageError
from perfci.model.settings import Quiet

_ALLOWED = frozenset(
    {
        "CC", "CXX", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL",
        "TERM", "TZ", "USER", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
        # what `srun` needs to start ranks in this job: with more of them, libraries change theirs
        "SLURM_CONF", "SLURM_JOB_ID", "SLURM_JOB_NUM_NODES",
        # Open MPI's, which decide nothing that is measured
        "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_CC", "OMPI_CXX",
    }
)  # fmt: skip
_SLURM_SETTINGS = frozenset(
    {
        "SLURM_CPU_BIND", "SLURM_CPU_FREQ_REQ", "SLURM_DISTRIBUTION", "SLURM_GPU_BIND",
        "SLURM_GPU_FREQ", "SLURM_HINT", "SLURM_MEM_BIND", "SLURM_MPI_TYPE", "SLURM_NETWORK",
        "SLURM_THREADS_PER_CORE",
    }
)  # fmt: skip
"""What `srun` takes for options that were not given: how it places ranks and connects them.

In a step of Slurm's they describe that step's task (a mask of its cores): ranks would be refused.
"""
_IN_STEP = "SLURM_STEP_ID"
_UNDER_MPIRUN = "OMPI_COMM_WORLD_RANK"
_OF_MPIRUN = (
    "OMPI_MCA_ess", "OMPI_MCA_initial_wdir", "OMPI_MCA_orte_", "OMPI_MCA_pmix",
    "OMPI_MCA_shmem_RUNTIME",
)  # fmt: skip
"""What `mpirun` adds to the settings of a process that it starts: its place in that job."""
_JOB_PREFIXES = ("OMPI_", "SLURM_")
_RECORDED_PREFIXES = ("CUBLAS_", "GLOO_", "NCCL_", "OMPI_MCA_", "UCX_", "VLLM_")
"""Settings of what ranks and servers are made of: they decide speed, so they are facts as well."""
_ALLOWED_PREFIXES = (
    *("LC_", "CUDA_", "NVIDIA_", "TORCH", "PYTORCH_", "TRITON_", "KMP_", "HF_HUB_"),
    *_RECORDED_PREFIXES,
)
_REFUSED = frozenset({"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "TORCH_LOGS", "TORCHINDUCTOR_CACHE_DIR"})
_SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")

_MALLOC = {
    # glibc keeps its pages: else tensors over 128 KiB page-fault on each call in some processes
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "67108864",
}
_NETWORK_OFF = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@dataclass(frozen=True, slots=True)
class CorePlan:
    """Which cores the workers and the parent use; empty where nothing is pinned."""

    workers: tuple[int, ...]
    parent: tuple[int, ...]
    threads: int


def available_cores() -> tuple[int, ...]:
    """Return the cores this process may run on."""
    return tuple(sorted(os.sched_getaffinity(0)))


def plan_cores(available: Sequence[int], *, cores: int, threads: int, pin: bool) -> CorePlan:
    """Return the plan: workers on the last cores, the parent on the rest where there is a rest.

    ``cores`` 0 means up to four, leaving the parent one; ``threads`` 0 means one a core.
    Raises UsageError for more cores than there are: fewer would be another environment's numbers.
    """
    if cores > len(available):
        raise UsageError(
            "too-many-cores",
            f"`cores` is {cores}, and perfci may use {len(available)} here",
            "Set `cores` to that or less, or to 0 to let perfci choose.",
        )
    wanted = cores or min(4, max(1, len(available) - 1))
    chosen = tuple(available[-wanted:])
    rest = tuple(core for core in available if core not in chosen)
    count = threads or len(chosen)
    return CorePlan(chosen, rest, count) if pin else CorePlan((), (), count)


def child_environment(
    inherited: Mapping[str, str],
    quiet: Quiet,
    threads: int,
    passed: Sequence[str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return a worker's whole environment: allow-listed names, quiet settings, then ``extra``.

    ``passed`` names what the user lets through besides; a name that looks like a secret needs it.
    """
    environment = {
        name: value for name, value in inherited.items() if _may_pass(name, passed, inherited)
    }
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
        environment["TORCHINDUCTOR_VEC_ISA_OK"] = "1"  # spares Inductor a probe of half a compile
    if not quiet.gc:
        environment["PERFCI_GC"] = "1"
    return environment | dict(extra)


def quiet_facts(quiet: Quiet, plan: CorePlan) -> dict[str, str]:
    """Return the settings as facts of the environment."""
    switched = {f"quiet_{name}": str(getattr(quiet, name)).lower() for name in Quiet.__slots__}
    return switched | {
        "worker_cores": str(len(plan.workers) or "all"),
        "threads": str(plan.threads),
    }


def library_facts(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of communication and serving libraries, as facts of the environment.

    So are those of Slurm that place ranks.

    What looks like a secret is none, even where ``pass_env`` names it.
    """
    return {
        name: value
        for name, value in sorted(environment.items())
        if (name.startswith(_RECORDED_PREFIXES) or name in _SLURM_SETTINGS)
        and _may_pass(name, (), environment)
    }


def unpassed_of_job(inherited: Mapping[str, str], passed: Sequence[str]) -> tuple[str, ...]:
    """Return the names of Slurm's and Open MPI's variables that workers don't get."""
    return tuple(
        name
        for name in sorted(inherited)
        if name.startswith(_JOB_PREFIXES) and not _may_pass(name, passed, inherited)
    )


def _may_pass(name: str, passed: Sequence[str], inherited: Mapping[str, str]) -> bool:
    if name in passed:
        return True
    if name in _REFUSED or any(word in name.upper() for word in _SECRET_WORDS):
        return False
    if name in _SLURM_SETTINGS:
        return _IN_STEP not in inherited
    if name.startswith(_OF_MPIRUN) and _UNDER_MPIRUN in inherited:
        return False
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
