"""A Slurm of two nodes on this machine: munged, slurmctld and two slurmd, from Debian's packages.

``apt-get install slurm-wlm munge`` has all of them. Nothing of the system's own Slurm is touched:
configuration, sockets, ports and state are this one's.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
LACKING = [
    name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None
]
NODES = ("n1", "n2")
CONFIGURATION = """\
ClusterName=perfci
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=5
KillWait=5
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 Features=fast
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 Features=fast
PartitionName=gpu Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """A running one; ``environment`` makes Slurm's programs ask it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        text = CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            user=getpass.getuser(),
            folder=folder,
            ports=free_ports(3),
        )
        (folder / "slurm.conf").write_text(text, encoding="ascii")

    def start(self) -> None:
        names = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid",
                 "log-file": "munged.log", "seed-file": "munge.seed"}  # fmt: skip
        self._run("munged", "--force", *(f"--{k}={self.folder / v}" for k, v in names.items()))
        self._run("slurmctld", "-c")
        for name in NODES:
            self.start_node(name)
        self.wait_for("idle", *NODES)

    def start_node(self, name: str) -> None:
        self._run("slurmd", "-N", name)

    def end_node(self, name: str) -> None:
        """Kill the node's daemon and all that runs on it, as if its power were gone."""
        self._pid(f"slurmd-{name}.pid").kill()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("SLURMD_NODENAME") == name:
                    for one in (*self._steps(process), process):
                        one.kill()

    def wait_for(self, state: str, *nodes: str) -> None:
        end = time.monotonic() + 60.0
        found = ""
        while time.monotonic() < end:
            found = self._run("sinfo", "--noheader", "--Node", "--format=%N %t")
            if all(f"{name} {state}" in found.splitlines() for name in nodes):
                return
            time.sleep(0.5)
        raise AssertionError(f"not {state}: {found}")

    def running(self) -> list[str]:
        """Return the nodes of tasks that run."""
        return self._run("squeue", "--noheader", "--states=RUNNING", "--format=%N").split()

    def stop(self) -> None:
        self._run("scancel", f"--user={getpass.getuser()}")
        for name in ("slurmd-n1.pid", "slurmd-n2.pid", "slurmctld.pid", "munged.pid"):
            with suppress(psutil.NoSuchProcess, FileNotFoundError):
                process = self._pid(name)
                process.send_signal(signal.SIGTERM)
                process.wait(20)

    def _pid(self, name: str) -> psutil.Process:
        return psutil.Process(int((self.folder / name).read_text()))

    @staticmethod
    def _steps(process: psutil.Process) -> Iterator[psutil.Process]:
        parent = process.parent()
        if parent is not None and "slurmstepd" in " ".join(parent.cmdline()):
            yield parent

    def _run(self, *command: str) -> str:
        environment = {**os.environ, **self.environment}
        environment["PATH"] += ":/usr/sbin"
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout


def free_ports(count: int) -> list[int]:
    found = []
    for _ in range(count):
        with closing(socket.socket()) as one:
            one.bind(("127.0.0.1", 0))
            found.append(one.getsockname()[1])
    return found
