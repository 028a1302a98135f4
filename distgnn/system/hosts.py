"""Several machines: a file of hosts becomes the options of `mpiexec`; hosts that a batch system gave are listed.

node1            one rank
node2:2          two ranks (also `node2 slots=2`, as Open MPI writes it)
# a comment
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distgnn.errors import InputError, RunError
from distgnn.system.atomic import read_text

RANKS = r"(?:\s*:\s*(?P<ranks>\d{1,5})|\s+slots\s*=\s*(?P<slots>\d{1,5}))?"
# What tells which hosts a job has (MPI libraries look at it), and the program that starts ranks on other hosts then.
ALLOCATIONS = {
    "SLURM_JOB_ID": "srun",
    "SLURM_JOBID": "srun",
    "PBS_NODEFILE": "ssh",
    "LSB_MCPU_HOSTS": "blaunch",
    "LSB_HOSTS": "blaunch",
    "PE_HOSTFILE": "qrsh",
    "COBALT_NODEFILE": "ssh",
    "LOADL_HOSTFILE": "ssh",
    "HYDRA_HOST_FILE": "ssh",
    "I_MPI_HYDRA_HOST_FILE": "ssh",
    "OMPI_MCA_orte_default_hostfile": "ssh",
}
OWN_STARTERS = ("HYDRA_LAUNCHER", "HYDRA_LAUNCHER_EXEC", "HYDRA_RMK", "OMPI_MCA_plm_rsh_agent", "I_MPI_HYDRA_BOOTSTRAP")
BATCH_VARIABLES = (*ALLOCATIONS, *OWN_STARTERS)
MOST_NAMED = 4
LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)" + RANKS)


def read_hosts(path: str) -> list[tuple[str, int]]:
    """(host, ranks) of each line, in order. Raises: InputError naming the line that is no host."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: no hosts can be read from it ({error})") from error
    return parse_hosts(lines, path)


def parse_hosts(lines: list[str], where: str) -> list[tuple[str, int]]:
    """(host, ranks) of each line "NAME" or "NAME:RANKS", in order. Raises: InputError naming the line that is none."""
    hosts = []
    for number, line in enumerate(lines, 1):
        text = str(line).split("#")[0].strip()
        if not text:
            continue
        found = LINE.fullmatch(text)
        ranks = int((found["ranks"] or found["slots"] or 1) if found else 0)
        if found is None or ranks < 1:
            raise InputError(f"{where}, line {number}: expected NAME or NAME:RANKS, found {text[:60]!r}")
        hosts.append((found["name"], ranks))
    if not hosts:
        raise InputError(f"{where}: names no host")
    return hosts


def check_names(hosts: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The hosts. Raises: InputError for names without an address; a starter of the user's may have names of its own."""
    by_ssh = not any(os.environ.get(name) for name in OWN_STARTERS)
    unknown = [name for name, _ in hosts if by_ssh and not _leads(name)]
    if unknown:
        named = ", ".join(unknown[:MOST_NAMED])
        raise InputError(f"no address is known of {named}: correct the name, or add it to /etc/hosts or DNS")
    return hosts


def _leads(name: str) -> bool:
    with suppress(OSError):
        return bool(socket.getaddrinfo(name, None))
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(["ssh", "-G", name], capture_output=True, text=True, timeout=10, check=False).stdout
        other = next((line.split()[1] for line in said.splitlines() if line.startswith("hostname ")), name)
        return other != name and bool(socket.getaddrinfo(other, None))
    return False


@contextmanager
def host_options(hosts: list[tuple[str, int]], flavor: str, exported: dict[str, str]) -> Iterator[list[str]]:
    """Within, options that start ranks on these hosts, in this order, with the variables `exported` set on every one.

    Notes: Hydra (MPICH, Intel) hands the whole environment on; Open MPI only what it is told to.
    """
    if flavor == "openmpi":
        named = ",".join(f"{name}:{ranks}" for name, ranks in hosts)
        yield ["--host", named, *(word for name in exported for word in ("-x", name))]
        return
    with tempfile.NamedTemporaryFile("w", prefix="distgnn-hosts-", suffix=".txt") as stream:
        stream.write("".join(f"{name}:{ranks}\n" for name, ranks in hosts))
        stream.flush()
        yield ["-f", stream.name]


def on_this_machine() -> bool:
    """Whether ranks without a list of hosts all start here: no batch system has given other hosts."""
    variable = next((name for name in ALLOCATIONS if os.environ.get(name)), None)
    if variable is None:
        return not any(os.environ.get(name) for name in OWN_STARTERS)
    hosts, starter = allocated_hosts(variable), ALLOCATIONS[variable]
    here = {socket.gethostname(), os.environ.get("SLURMD_NODENAME", ""), "localhost", "127.0.0.1"}
    short = {one.split(".")[0] for one in here}
    if hosts and all(name in here or name.split(".")[0] in short for name in hosts):
        return True
    if shutil.which(starter) is not None or any(os.environ.get(name) for name in OWN_STARTERS):
        return False
    nodes = os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES") or str(len(hosts) or 1)
    if starter == "srun" and nodes == "1" and not any("[" in name for name in hosts):
        return True  # a container of that node has another name
    named = ", ".join(hosts[:MOST_NAMED]) + (", …" if len(hosts) > MOST_NAMED else "")
    has = f"has {nodes} hosts ({named})" if hosts else "names hosts that cannot be read"
    unset = " ".join(f"-u {name}" for name in ALLOCATIONS if name in os.environ)
    raise RunError(
        f"the job ({variable}) {has}, and {starter}, which starts ranks there, is not on this machine: start where it "
        f"is, or use `distgnn launch --hosts FILE`; `env {unset} distgnn …` starts all ranks here"
    )


def allocated_hosts(variable: str) -> list[str]:
    """The hosts of a batch system's job, each once, Slurm's as it lists them (n[01-03]); empty: they cannot be read."""
    text = os.environ[variable]
    if variable.startswith("SLURM"):
        listed = os.environ.get("SLURM_JOB_NODELIST") or os.environ.get("SLURM_NODELIST") or ""
        names = re.findall(r"(?:[^,\[]|\[[^\]]*\])+", listed)
    elif variable == "LSB_MCPU_HOSTS":
        names = text.split()[::2]
    elif variable == "LSB_HOSTS":
        names = text.split()
    else:
        try:
            lines = [line.split("#")[0].split() for line in Path(text).read_text(errors="replace").splitlines()]
        except OSError:
            return []
        names = [words[0].split(":")[0] for words in lines if words]
    return list(dict.fromkeys(names))


def check_tasks() -> None:
    """Raise RunError, with what to do, in each process that was started several times without MPI between them."""
    text = several_tasks()
    if text is not None:
        raise RunError(text)


def several_tasks() -> str | None:
    """What to say where this process is one of several that know nothing of each other; None where it is alone."""
    srun, torchrun, flux = (
        os.environ.get(name, "") for name in ("SLURM_STEP_NUM_TASKS", "WORLD_SIZE", "FLUX_JOB_SIZE")
    )
    if _more_than_one(srun):
        return (
            f"srun started {srun} tasks without MPI between them: give it --mpi=pmi2 or --mpi=pmix, or, for runs that "
            "have nothing to do with each other, unset SLURM_STEP_NUM_TASKS in each"
        )
    by_torchrun = "RANK" in os.environ and ("TORCHELASTIC_RUN_ID" in os.environ or "MASTER_ADDR" in os.environ)
    if _more_than_one(torchrun) and by_torchrun:
        use = f"use `distgnn run -n {torchrun} SCRIPT.py`"
        return f"torchrun started {torchrun} processes without MPI between them: {use}"
    if _more_than_one(flux) and "FLUX_TASK_RANK" in os.environ:
        return f"flux run started {flux} tasks without MPI between them: do not give it -o mpi=none or -o pmi=off"
    return None


def _more_than_one(text: str) -> bool:
    return text.isdigit() and int(text) > 1
