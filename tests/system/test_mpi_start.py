"""A network that MPI cannot use is one line with what to set, exit code 2; ranks of one machine use loopback alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from command import distgnn, without_rank_variables
from cut_graphs import random_graph

from distgnn.partition import partition_graph
from distgnn.system.launch import no_transport

MPICH = "Other MPI error, error stack:\ninternal_Session_init(103): failed\n{}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"UCX_TLS": "nonsense", "UCX_LOG_LEVEL": "fatal"}, "unset UCX_TLS=nonsense, or set UCX_TLS=tcp,sm,self"),
        ({"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "nonsense"}, "unset FI_PROVIDER=nonsense, or set FI_PROVIDER="),
        ({"MPIR_CVAR_CH4_NETMOD": "nonsense"}, "no network module 'nonsense' (MPIR_CVAR_CH4_NETMOD): unset it"),
    ],
    ids=["ucx", "ofi", "module"],
)
def test_a_network_that_cannot_be_used(tmp_path, monkeypatch, variables, says):
    from mpi4py import MPI

    if "ch4:ucx ofi" not in MPI.Get_library_version():
        pytest.skip("another MPI library, or MPICH with one network module")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    partition_graph(random_graph(0), 1, tmp_path / "parts", method="libra")
    done = distgnn("train", tmp_path / "parts", "--epochs", 1, "--run-dir", tmp_path / "run")
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert says in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("MPIDI_UCX_init_local(240):  no device", "MPI found no network that it can use (no device): set UCX_TLS=tcp"),
        (
            "find_provider(132): OFI call failed",
            "MPI found no network that it can use (OFI call failed): set FI_PROVIDER",
        ),
        (
            "MPIR_pmi_init(88): Runtime environment uses unsupported PMI version PMIx. Aborting.",
            "mpi4py has loaded MPICH, and what started this rank does not speak to it (Runtime environment uses",
        ),
    ],
    ids=["ucx", "ofi", "another starter"],
)
def test_where_no_variable_is_set_the_line_says_which(monkeypatch, said, line):
    for name in ("UCX_TLS", "FI_PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    assert no_transport(MPICH.format(said)).startswith(line)


@pytest.mark.slow
@pytest.mark.parametrize("call", ["init()", "fit('communities:nodes=60', 'gcn', ranks=1, epochs=1, quiet=True)"])
def test_a_process_that_is_killed_leaves_no_shared_memory(tmp_path, call):
    """MPICH unlinks its own at MPI_Finalize only."""
    source = f"import os, distgnn; distgnn.{call}; os.kill(os.getpid(), 9)"
    environment = without_rank_variables() | {"DISTGNN_CACHE": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", source], env=environment)
    assert process.wait(900) == -9
    assert not Path(f"/dev/shm/mpich_shm_{process.pid:x}_0").exists()


LISTENS = """
import os
import distgnn
from distgnn.system.launch import import_mpi
comm = import_mpi().COMM_WORLD
assert comm.allgather(comm.rank) == [0, 1]
def sockets(pid):
    return {os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd") if os.path.lexists(entry.path)}
mine = sockets(os.getpid()) - sockets(os.getppid())  # it has inherited Hydra's own
lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]]
listening = {words[1] for words in lines if words[3] == "0A" and f"socket:[{words[9]}]" in mine}
print("elsewhere:", [address for address in listening if not address.startswith("0100007F:")], flush=True)
"""


@pytest.mark.slow
def test_ranks_of_one_machine_listen_on_loopback_only(tmp_path):
    (tmp_path / "script.py").write_text(LISTENS)
    done = distgnn("run", "-n", 2, tmp_path / "script.py")
    assert (done.returncode, done.stdout) == (0, "elsewhere: []\n" * 2), done.stderr
