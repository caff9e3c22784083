"""The worker's environment and cgroup: what keeps a measurement quiet, and secrets out.

Each setting can be switched off, and is one of the environment's facts.

Workers get cgroups (v2) of their own if perfci's cgroup was delegated to perfci alone, as by
``systemd-run --user --scope -p Delegate=yes perfci compare …``. A cgroup that has processes can't
give its children a controller, so perfci moves itself into a child, next to its workers' cgroups.
The guardian leaves all as it was found (``measure.process_cleanup``).
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.measure.machine.cores import CorePlan
from perfci.metrics.observed.processes import PEAK, PREFIX, PROCESSES, ROOT, cgroup_of, own_cgroup
from perfci.model.measuring import Quiet

_ALLOWED = frozenset(
    {
        "CC", "CXX", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL",
        "TERM", "TZ", "USER", "VIRTUAL_ENV", "CONDA_PREFIX", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
        # what a command's `srun` needs in this job; with more of Slurm's, libraries change
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
"""The defaults of `srun`'s options: how it places tasks and connects them.

Inside a step of Slurm they describe that step's task (a mask of its cores, say), and tasks would
be refused. So they aren't passed there.
"""
_IN_STEP = "SLURM_STEP_ID"
_UNDER_MPIRUN = "OMPI_COMM_WORLD_RANK"
_OF_MPIRUN = (
    "OMPI_MCA_ess", "OMPI_MCA_initial_wdir", "OMPI_MCA_orte_", "OMPI_MCA_pmix",
    "OMPI_MCA_shmem_RUNTIME",
)  # fmt: skip
"""Begin the variables that `mpirun` adds for a process that it starts: its place in that job."""
_JOB_PREFIXES = ("OMPI_", "SLURM_")
_RECORDED_PREFIXES = ("CUBLAS_", "GLOO_", "NCCL_", "OMPI_MCA_", "UCX_", "VLLM_")
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
_CONTROLLERS, _SUBTREE = "cgroup.controllers", "cgroup.subtree_control"
_DELEGATED = ("user.delegate", "trusted.delegate")
"""The attributes by which systemd marks a delegated cgroup. Others may be writable, too."""
_TRIES = 5
"""How often processes are moved to the new cgroup: some may fork meanwhile."""


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

    Slurm's settings that place ranks are among them. A name that looks like a secret's is left out,
    even if ``pass_env`` has it.
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


@dataclass(frozen=True, slots=True)
class CgroupDivision:
    """The cgroup ``leaf`` that perfci moved into. ``enabled``: it enabled the controller above."""

    leaf: str = ""
    enabled: bool = False


def divide() -> CgroupDivision:
    """Move perfci into a child of its cgroup, so that workers can have cgroups of their own.

    Does nothing if the cgroup can't be divided.
    """
    here = own_cgroup()
    if here is None or undivided_reason(here):
        return CgroupDivision()
    remove_left(here)
    leaf = here / f"{PREFIX}{secrets.token_hex(8)}"
    enabled = "memory" not in _words(here / _SUBTREE)
    with contextlib.suppress(OSError):  # if the kernel refuses, a worker finds no memory.peak
        leaf.mkdir()
        for _ in range(_TRIES):  # again for processes that were forked meanwhile
            own = set(_processes_in(here)) & _own_processes()
            for pid in own:
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    _write(leaf / PROCESSES, str(pid))
            if not own:
                break
        if enabled:
            _write(here / _SUBTREE, "+memory")
    return CgroupDivision(str(leaf), enabled)


def undivided_reason(here: Path | None) -> str:
    """Return why perfci must not or can't divide the cgroup ``here``, or nothing."""
    if here is None or not (here / _CONTROLLERS).exists():
        return "there is no cgroup v2"
    return _unfit_reason(here) or _undelegated_reason(here)


def _unfit_reason(here: Path) -> str:
    if not (here / "cgroup.type").exists():
        return "its cgroup is the machine's own, which no one delegated"
    if "memory" not in _words(here / _CONTROLLERS):
        return "its cgroup has no memory controller"
    if not _is_resettable(here / PEAK):
        return "this kernel can't reset memory.peak: Linux 6.12 can"
    return ""


def _undelegated_reason(here: Path) -> str:
    begins_here = here == ROOT or not os.access(here.parent, os.W_OK) or _is_marked(here)
    places = (here, here / PROCESSES, here / _SUBTREE)
    if not (begins_here and all(os.access(place, os.W_OK) for place in places)):
        return "its cgroup is not delegated to it"
    if set(_processes_in(here)) - _own_processes():
        return "its cgroup has other processes, too"
    return ""


def remove_left(here: Path) -> None:
    """Remove the cgroups in ``here`` of sessions that were killed together with their guardians."""
    for path in here.glob(f"{PREFIX}*"):
        _remove(path)


def remove_worker(token: str) -> None:
    """Remove the cgroup of a worker that has ended, with all that it started."""
    if folder := cgroup_of(token):
        _remove(folder)


def _processes_in(folder: Path) -> list[int]:
    """Return the ids of a cgroup's processes, 0 for each that this process can't see."""
    return [int(word) for word in _words(folder / PROCESSES)]


def _remove(folder: Path) -> None:
    """Remove a cgroup, unless it is gone or a process is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _own_processes() -> set[int]:
    import psutil

    this = psutil.Process()
    return {this.pid, *(child.pid for child in this.children(recursive=True))}


def _is_resettable(peak: Path) -> bool:
    """Return whether the file's mode allows writing. Opening it says nothing: root always may."""
    try:
        return bool(peak.stat().st_mode & stat.S_IWUSR)
    except OSError:
        return False


def _is_marked(here: Path) -> bool:
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(here, name) == b"1":
                return True
    return False


def _words(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").split()
    except OSError:
        return []


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="ascii")


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
