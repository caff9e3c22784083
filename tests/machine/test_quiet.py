"""A worker's environment: quiet settings in, secrets out."""

from __future__ import annotations

from functools import partial

from perfci.config.keys import QuietTable
from perfci.measure.machine.cores import plan_cores
from perfci.measure.machine.isolation import child_environment, library_facts

INHERITED = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "GITHUB_TOKEN": "t",
    "ACTIONS_RUNTIME_TOKEN": "t",
    "AWS_SECRET_ACCESS_KEY": "k",
    "CUDA_VISIBLE_DEVICES": "1",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
    "TORCH_LOGS": "+dynamo",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LD_PRELOAD": "/evil.so",
    "MY_DATA": "/data",
    "SLURM_JOB_ID": "7",
    "SLURM_JWT": "t",
    "SLURM_NTASKS": "4",
}


QUIET = QuietTable()


def made(quiet: QuietTable = QUIET, passed: tuple[str, ...] = ()) -> dict[str, str]:
    return child_environment(INHERITED, quiet, 2, passed, {"TMPDIR": "/scratch"})


def test_only_allow_listed_names_pass() -> None:
    inherited = {name for name in INHERITED if name in made()}
    assert inherited == {"PATH", "HOME", "CUDA_VISIBLE_DEVICES"}


def test_pass_env_lets_a_name_through() -> None:
    assert made(passed=("MY_DATA",))["MY_DATA"] == "/data"


def test_settings_of_communication_and_servers_pass_and_are_facts_but_no_secrets() -> None:
    settings = {
        "NCCL_ALGO": "Ring",
        "GLOO_SOCKET_IFNAME": "eth0",
        "UCX_TLS": "tcp",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
        "VLLM_ATTENTION_BACKEND": "FLASH_ATTN",
    }
    inherited = {**settings, "VLLM_API_KEY": "k", "PATH": "/bin"}
    passed = child_environment(inherited, QUIET, 2, (), {})
    assert {name for name in inherited if name in passed} == {*settings, "PATH"}
    assert library_facts(inherited) == settings
    assert child_environment(inherited, QUIET, 2, ("VLLM_API_KEY",), {})["VLLM_API_KEY"] == "k"


def test_quiet_settings_are_set_and_each_can_be_switched_off() -> None:
    quiet = made()
    assert quiet["PYTHONHASHSEED"] == "0"
    assert quiet["OMP_NUM_THREADS"] == "2"
    assert quiet["MALLOC_TRIM_THRESHOLD_"] == "1073741824"
    assert "PERFCI_GC" not in quiet
    off = made(QuietTable(malloc=False, hash_seed=False, gc=False, threads=False, vec_isa=False))
    assert not {"PYTHONHASHSEED", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} & off.keys()
    assert "TORCHINDUCTOR_VEC_ISA_OK" not in off
    assert off["PERFCI_GC"] == "1"


def test_workers_and_parent_get_cores_of_their_own() -> None:
    plan = plan_cores((0, 1), cores=0, threads=0, pin=True)
    assert (plan.workers, plan.parent, plan.threads) == ((1,), (0,), 1)
    alone = plan_cores((0,), cores=0, threads=0, pin=True)
    assert (alone.workers, alone.parent) == ((0,), ())
    assert plan_cores(tuple(range(16)), cores=0, threads=0, pin=True).threads == 4
    assert plan_cores((0, 1), cores=0, threads=0, pin=False).workers == ()


def test_of_a_quota_only_whole_cores_are_used_unless_more_are_asked_for() -> None:
    within = partial(plan_cores, tuple(range(8)), threads=0, pin=True)
    plan = within(cores=0, quota=2.5)
    assert (plan.workers, plan.parent, plan.threads) == ((7,), (6,), 1)
    assert (within(cores=0, quota=0.5).workers, within(cores=0, quota=0.5).parent) == ((7,), ())
    assert (within(cores=3, quota=2.0).workers, within(cores=3, quota=2.0).parent) == (
        (5, 6, 7),
        (),
    )
    assert within(cores=0, quota=64.0) == within(cores=0)
