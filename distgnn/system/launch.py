"""Starts ranks: finds `mpiexec`, runs the command line again under it, and leaves no rank behind.

```
distgnn train parts/            one process, not under MPI: rank count from the partition
  └─ mpiexec -n P python -m distgnn.cli train parts/      one thread team per rank, signals passed on
```
Nothing here imports MPI until `import_mpi` is called: the launcher itself is no rank. supervise.py waits for the ranks.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.system.free_memory import address_limit, check_programs, check_room, check_room_here
from distgnn.system.hosts import BATCH_VARIABLES, check_tasks, host_options, on_this_machine
from distgnn.system.jobs.own_rank import forget_segment, see_to_the_end, under_mpi
from distgnn.system.jobs.processes import REASON
from distgnn.system.jobs.supervise import ended_with_parent, supervise
from distgnn.system.processor import available_cores, binding, threads_per_rank
from distgnn.system.scripts.own_copies import FILES, publish

Ranks = int | list[tuple[str, int]]
THREAD_VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PRINT_VARIABLE = "DISTGNN_PRINT"  # "once": after `dg.load`, ranks but the first print nothing on standard output
TIMEOUT_VARIABLE = "DISTGNN_TIMEOUT"  # seconds until ranks that exchange nothing are ended (comm/ending/loop_watch.py)
INSTALL_HINT = "install one with `pip install 'distgnn[mpich]'`, or load your site's MPI module"
WAIT_ASLEEP = {
    "mpich": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
    "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
    "intel": {"I_MPI_WAIT_MODE": "1", "I_MPI_THREAD_YIELD": "3"},
}
# Ranks of one machine exchange through shared memory; what they open besides need not be seen from other machines.
LOOPBACK = {
    "mpich": {"UCX_NET_DEVICES": "lo", "FI_TCP_IFACE": "lo", "FI_SOCKETS_IFACE": "lo"},
    "openmpi": {"OMPI_MCA_btl": "^tcp", "UCX_NET_DEVICES": "lo"},  # mpirun itself refuses to do without a network
    "intel": {"FI_TCP_IFACE": "lo"},
}
# What chooses a transport, and a value that every machine can use.
CHOICES = {"UCX": ("UCX_TLS", "tcp,sm,self"), "OFI": ("FI_PROVIDER", "tcp")}
NETMOD = "MPIR_CVAR_CH4_NETMOD"


def import_mpi() -> Any:
    """Return `mpi4py.MPI`, initialised. Raises RunError in one line where no MPI library can be loaded.

    Collective: yes, as `MPI_Init` is.

    Raises: RunError also where MPI finds no way to send, with the variable that chooses one; or where `mpiexec` and
        the MPI library are of different makes: every process would then be the only rank of a world of its own.
    """
    if "mpi4py.MPI" not in sys.modules:
        check_room_here(alone=not under_mpi())
    try:
        MPI = _start_mpi()
    except RunError:
        raise
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise RunError(f"no MPI library could be loaded ({reason}): {INSTALL_HINT}") from error
    expected = os.environ.get("DISTGNN_RANKS")
    if expected and under_mpi() and MPI.COMM_WORLD.size != int(expected):
        library = MPI.Get_library_version().split("\n")[0].strip("\0 ")
        raise RunError(
            f"mpiexec started {expected} ranks, but the MPI library ({library}) sees {MPI.COMM_WORLD.size}: "
            "they are of different makes; set DISTGNN_MPIEXEC to the mpiexec of that library"
        )
    return MPI


def _start_mpi() -> Any:
    """`mpi4py.MPI`, initialised with threads; one that is imported already is left as it is."""
    if "mpi4py.MPI" in sys.modules:
        return sys.modules["mpi4py.MPI"]
    import mpi4py

    ours = bool(mpi4py.rc.initialize)  # a user's own choice stays
    mpi4py.rc.initialize = False
    from mpi4py import MPI

    if not ours or MPI.Is_initialized():
        return MPI
    session = _session(MPI)
    MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if session is not None:
        session.Finalize()
    forget_segment()
    if not under_mpi():  # else `forget_parent` has done so
        see_to_the_end(ours=True)
    return MPI


def _session(mpi: Any) -> Any:
    """A session of MPICH; None of other libraries, and of releases without sessions.

    Notes: MPI_Init of MPICH ends the process where UCX or OFI finds no transport, with a stack of MPICH's own. A
        session returns an error instead. It opens the transports, and MPI_Init finds them open (2 ms more).
    """
    library = mpi.Get_library_version()
    if mpi.get_vendor()[0] != "MPICH" or mpi.Get_version() < (4, 0) or not hasattr(mpi, "Session"):
        return None
    netmod = os.environ.get(NETMOD, "")
    devices = next((line for line in library.splitlines() if "Device" in line), netmod)
    if netmod not in devices:  # MPICH would end by SIGSEGV
        raise _of_this_host(f"MPI has no network module {netmod!r} ({NETMOD}): unset it ({' '.join(devices.split())})")
    info = mpi.Info.Create()
    info.Set("thread_level", "MPI_THREAD_MULTIPLE")
    try:
        return mpi.Session.Init(info, mpi.ERRORS_RETURN)
    except mpi.Exception as error:
        raise _of_this_host(no_transport(str(error))) from error
    finally:
        info.Free()


def no_transport(said: str) -> str:
    """The line on an error of MPI's start: why, and which variable to set, or unset where it is set."""
    reason = said.strip().splitlines()[-1].partition(":")[2].strip() or said
    if "unsupported PMI" in reason:  # a starter of another library
        other = "srun --mpi=pmi2, or an mpi4py that finds the starter's library"
        if "OMPI_COMM_WORLD_RANK" in os.environ:
            beside = Path(sys.executable).with_name("mpiexec")
            ours = str(beside) if beside.exists() else "MPICH's mpiexec"
            other = f"use {ours} in place of Open MPI's mpirun, or set MPI4PY_MPIABI=openmpi"
        return f"mpi4py has loaded MPICH, and what started this rank does not speak to it ({reason}): {other}"
    name, works = CHOICES["OFI" if "OFI" in said else "UCX"]
    what = f"unset {name}={os.environ[name]}, or set" if name in os.environ else "set"
    return f"MPI found no network that it can use ({reason}): {what} {name}={works}"


def _of_this_host(text: str) -> Exception:
    """An error that the first rank of each host says."""
    error = RunError(text)
    local = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
    if next((number for name in local if (number := os.environ.get(name))), "0") != "0":
        on_all_ranks(error)
    return error


def find_mpiexec() -> str:
    """Return the path of `mpiexec`: DISTGNN_MPIEXEC, else the one beside this Python, else the first on PATH."""
    named = os.environ.get("DISTGNN_MPIEXEC")
    if named:
        found = shutil.which(named)
        if found is None:
            raise RunError(f"DISTGNN_MPIEXEC is {named!r}, which is not a program that can be run")
        return found
    for name in ("mpiexec", "mpirun"):
        beside = Path(sys.executable).parent / name
        if os.access(beside, os.X_OK):
            return str(beside)
    found = shutil.which("mpiexec") or shutil.which("mpirun")
    if found is None:
        raise RunError(f"no mpiexec was found beside {sys.executable} or on PATH: {INSTALL_HINT}")
    return found


def mpi_flavor(mpiexec: str) -> str:
    """Return "mpich", "openmpi" or "intel": whose options `mpiexec` takes."""
    try:
        answer = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{mpiexec} --version does not answer ({error}): {INSTALL_HINT}") from error
    text = answer.stdout + answer.stderr
    if "Open MPI" in text or "OpenRTE" in text or "PRRTE" in text:
        return "openmpi"
    return "intel" if "Intel" in text else "mpich"


def mpiexec_command(mpiexec: str, flavor: str, num_ranks: int) -> list[str]:
    """Return the command that starts `num_ranks` ranks; the program and its arguments are to follow."""
    if flavor != "openmpi":
        return [mpiexec, "-n", str(num_ranks)]
    # Open MPI refuses more ranks than cores and refuses root; it binds a rank to one core, threads and all.
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [mpiexec, *as_root, "--oversubscribe", "--bind-to", "none", "-n", str(num_ranks)]


def loopback_variables(flavor: str) -> dict[str, str]:
    """Variables that keep ranks of this machine off its networks; a user's own choice stands."""
    if not on_this_machine():
        return {}
    return {name: value for name, value in LOOPBACK[flavor].items() if name not in os.environ}


def rank_environment(num_ranks: int, threads: int, flavor: str, most: int | None = None) -> dict[str, str]:
    """Return the environment variables that every rank needs on top of the launcher's own.

    Args: most: ranks that a machine has at most; None: all are on one.

    Notes: MPI libraries wait by spinning. With more threads than cores a waiting rank takes its share of a core from
        the one that everybody waits for, so it is told to sleep: 4 MPICH ranks on 2 cores, one with 4 times the others'
        work, take 12 ms for a step and not 20. A message then takes 120 microseconds and not 10.
    """
    variables = dict.fromkeys((*THREAD_VARIABLES, "DISTGNN_NUM_THREADS"), str(threads))
    variables["DISTGNN_RANKS"] = str(num_ranks)
    variables["PYTHONHASHSEED"] = os.environ.get("PYTHONHASHSEED", "0")  # sets of texts have one order on all ranks
    variables |= torch_environment()
    if (most or num_ranks) * threads > available_cores():
        # What the user has set himself stands.
        variables |= {name: os.environ.get(name, value) for name, value in WAIT_ASLEEP[flavor].items()}
    return variables


def torch_environment() -> dict[str, str]:
    """Return the variables that torch must find when it is loaded; a user's own choice is kept.

    GOMP_SPINCOUNT: torch's idle threads sleep instead of spinning on the cores that the kernels use.
    THP_MEM_ALLOC_ENABLE: large tensors lie in pages of 2 MB (kernels/runtime/memory.py has what that brings).
    """
    variables = {}
    if "GOMP_SPINCOUNT" not in os.environ and "OMP_WAIT_POLICY" not in os.environ:
        variables["GOMP_SPINCOUNT"] = "1000"
    if "THP_MEM_ALLOC_ENABLE" not in os.environ:
        variables["THP_MEM_ALLOC_ENABLE"] = "1"
    return variables


def run_under_mpi(argv: list[str], ranks: Ranks, threads: int | None = None, **how: Any) -> int:
    """Run `distgnn ARGV` on ranks and return the exit code.

    Args:
        argv: arguments of the command line, without the program's name.
        ranks: how many on this machine; or (name, ranks) of each of several, with the same Python and paths.
        threads: per rank; None: a machine's ranks share out the cores of this one.
        how: fields of `supervise.Job`. With `graceful` a training run writes a checkpoint at the first signal and ends;
            a second signal stops the ranks at once.

    Raises: RunError where there is no `mpiexec`, or where srun started several tasks that know nothing of each other;
        InputError for counts below one.

    Notes: SIGINT, SIGTERM and SIGHUP stop the ranks and give 128 + the signal's number. However this returns, and
    also when this process is killed, no rank stays behind. Where standard error is a terminal, the ranks find its
    size in DISTGNN_TERMINAL, as "120x40".
    """
    return _start([sys.executable, "-m", "distgnn.cli", *argv], ranks, threads, safe_path(), how)


def safe_path() -> dict[str, str]:
    """The variable without which `python -m` would import a folder `datasets` of the working directory."""
    return {} if sys.path[0] in ("", working_folder()) else {"PYTHONSAFEPATH": "1"}


def working_folder() -> str:
    """The working directory. Raises: InputError where it was removed: torch does not run in it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise InputError("the working directory was removed: go to one that exists") from None


def run_program(
    program: list[str],
    ranks: Ranks,
    threads: int | None = None,
    timeout: float | None = None,
    *,
    reason: Path | None = None,
    **how: Any,
) -> int:
    """Run a program of the user's on ranks and return the exit code.

    Args:
        program: command and arguments, as ["python", "script.py"]; ranks, threads, how: as of `run_under_mpi`.
        timeout: seconds after which ranks that exchange nothing are ended; None: as DISTGNN_TIMEOUT says.
        reason: a file that gets the line on a rank that was killed.

    Raises: as `run_under_mpi`. Notes: what a script computes of a graph is the same on all ranks, so the first one
        prints it, unless DISTGNN_PRINT is "all", and writes its files, unless DISTGNN_FILES is "all".
    """
    ours = {PRINT_VARIABLE: os.environ.get(PRINT_VARIABLE, "once")}
    if timeout is not None:
        ours[TIMEOUT_VARIABLE] = str(check_timeout("timeout", timeout))
    if reason is not None:
        ours[REASON] = str(reason)
    if os.environ.get(FILES) == "all":
        return _start(program, ranks, threads, ours, how)
    check_temporary()
    with tempfile.TemporaryDirectory(prefix=".distgnn-files-", ignore_cleanup_errors=True) as folder:
        ours[FILES] = f"{folder}:{time.time()}"
        try:
            return _start(program, ranks, threads, ours, how)
        finally:
            publish(folder)


def _start(program: list[str], ranks: Ranks, threads: int | None, ours: dict[str, str], how: dict[str, Any]) -> int:
    """Run a program on ranks, which find the variables `ours` besides all ranks' own."""
    hosts = [] if isinstance(ranks, int) else ranks
    num_ranks = ranks if isinstance(ranks, int) else sum(count for _, count in ranks)
    if num_ranks < 1 or (threads is not None and threads < 1):
        raise InputError(f"ranks and threads must be at least 1, got {num_ranks} ranks and {threads} threads")
    if not hosts:
        check_tasks()
    check_temporary()
    mpiexec = find_mpiexec()
    flavor, here = mpi_flavor(mpiexec), not hosts and on_this_machine()
    if here:
        check_programs(num_ranks)
    if flavor == "mpich" and here:
        check_room(num_ranks)
    most = max((count for _, count in hosts), default=num_ranks)  # ranks of a machine
    bound = binding() if most > 1 else ""
    if bound:
        raise InputError(f"{bound} binds all ranks of a machine to the same cores: unset it, ranks share the cores out")
    ours = rank_environment(num_ranks, threads or threads_per_rank(most), flavor, most) | ours
    command = mpiexec_command(mpiexec, flavor, num_ranks)
    if hosts:
        ours |= {name: os.environ[name] for name in ("PYTHONPATH", "DISTGNN_DATA") if name in os.environ}
    elif here and flavor == "mpich" and "HYDRA_IFACE" not in os.environ:
        command += ["-iface", "lo"]  # also where the machine's own name has no address
    left_out = ("DISTGNN_TERMINAL", *(BATCH_VARIABLES if here else ()))  # mpiexec would ask a batch system for hosts
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= ({} if hosts else loopback_variables(flavor)) | _terminal_variables() | ours
    how |= {"proxies": flavor != "openmpi", "machines": len({name for name, _ in hosts}) or 1}
    with ExitStack() as stack:
        if hosts:
            command += stack.enter_context(host_options(hosts, flavor, ours | {"DISTGNN_LAUNCHED": "1"}))
        code = supervise([*command, *ended_with_parent(program)], environment, **how)
    # A library that gets no addresses aborts, and the line on that has been said.
    return 2 if code == 128 + signal.SIGABRT and address_limit() is not None else code


def check_temporary() -> None:
    """Raises: RunError where no folder for temporary files can be written."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        raise RunError(f"{error.strerror or error}: set TMPDIR to a folder that can be written") from None


def check_timeout(name: str, value: float | str) -> float:
    """The seconds. Raises: InputError unless they are a number above 0."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"{name} is {value}: expected seconds above 0")
    return seconds


def _terminal_variables() -> dict[str, str]:
    """Tell rank 0, which writes to mpiexec, what lies behind: MPICH gives it a pipe, Open MPI a terminal of its own."""
    variables = {} if sys.stdout is not None and sys.stdout.isatty() else {"TTY_COMPATIBLE": "0"}  # to rich: no colours
    try:
        columns, lines = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # closed
        return variables
    return variables | {"DISTGNN_TERMINAL": f"{columns or 80}x{lines or 24}"}  # a bare pseudo-terminal has no size
