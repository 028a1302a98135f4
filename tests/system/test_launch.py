"""Starting ranks: which mpiexec, how many threads, what errors and signals do, and that nobody is left behind."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command import without_rank_variables

from distgnn.errors import InputError, RunError
from distgnn.system import launch
from distgnn.system.calls import launch as call
from distgnn.system.hosts import read_hosts
from distgnn.system.jobs.own_rank import RANK_VARIABLES
from distgnn.system.processor import BINDING


@pytest.fixture
def fake_mpiexec(tmp_path, monkeypatch):
    """Make DISTGNN_MPIEXEC a program that prints the given text, whatever it is asked."""

    def make(text: str) -> str:
        program = tmp_path / "mpiexec"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("DISTGNN_MPIEXEC", str(program))
        return str(program)

    return make


def test_the_named_mpiexec_comes_first_then_the_one_beside_python_then_path(fake_mpiexec, tmp_path, monkeypatch):
    program = fake_mpiexec("anything")
    assert launch.find_mpiexec() == program
    monkeypatch.setenv("DISTGNN_MPIEXEC", "/nonexistent/mpiexec")
    with pytest.raises(RunError, match="DISTGNN_MPIEXEC is '/nonexistent/mpiexec'"):
        launch.find_mpiexec()
    monkeypatch.delenv("DISTGNN_MPIEXEC")
    beside, on_path = tmp_path / "environment", tmp_path / "site"
    for folder in (beside, on_path):
        folder.mkdir()
        (folder / "mpiexec").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv("PATH", str(on_path))
    assert launch.find_mpiexec() == str(beside / "mpiexec")
    (beside / "mpiexec").unlink()
    assert launch.find_mpiexec() == str(on_path / "mpiexec")
    (on_path / "mpiexec").unlink()
    with pytest.raises(RunError, match=r"no mpiexec was found .*pip install 'distgnn\[mpich\]'"):
        launch.find_mpiexec()


@pytest.mark.parametrize(
    ("text", "flavor"),
    [
        ("HYDRA build details:\n    Version: 4.3.2", "mpich"),
        ("mpiexec (Open MPI) 5.0.11", "openmpi"),
        ("mpiexec (OpenRTE) 4.1.4", "openmpi"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.16", "intel"),
    ],
)
def test_flavor_by_version_text(fake_mpiexec, text, flavor):
    assert launch.mpi_flavor(fake_mpiexec(text)) == flavor


def test_open_mpi_takes_root_and_more_ranks_than_cores(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command = launch.mpiexec_command("mpiexec", "openmpi", 4)
    assert {"--allow-run-as-root", "--oversubscribe"} < set(command)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--allow-run-as-root" not in launch.mpiexec_command("mpiexec", "openmpi", 4)
    assert launch.mpiexec_command("mpiexec", "mpich", 4) == ["mpiexec", "-n", "4"]


def test_ranks_of_one_machine_keep_off_its_networks(monkeypatch):
    for name in (*launch.BATCH_VARIABLES, *launch.LOOPBACK["mpich"]):
        monkeypatch.delenv(name, raising=False)
    assert launch.loopback_variables("mpich") == launch.LOOPBACK["mpich"]
    monkeypatch.setenv("UCX_NET_DEVICES", "mlx5_0:1")
    assert "UCX_NET_DEVICES" not in launch.loopback_variables("mpich")
    monkeypatch.setenv("HYDRA_LAUNCHER", "ssh")
    assert launch.loopback_variables("mpich") == {}


# being a rank


@pytest.mark.parametrize("variable", RANK_VARIABLES)
def test_each_launcher_is_recognised_and_a_plain_batch_script_is_no_rank(monkeypatch, variable):
    for name in RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert not launch.under_mpi()
    monkeypatch.setenv(variable, "0")
    assert launch.under_mpi()


@pytest.mark.parametrize(
    "call", ["from distgnn.system.launch import import_mpi as it; it()", "import distgnn; distgnn.fit"]
)
def test_no_mpi_library_is_one_line_that_names_the_extra(call):
    source = f"import mpi4py; {call}"
    command, environment = [sys.executable, "-c", source], os.environ | {"MPI4PY_LIBMPI": "/nonexistent/libmpi.so"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    last = answer.stderr.strip().splitlines()[-1]
    assert "cannot open shared object file" not in answer.stderr or "import_mpi" in call
    assert "RunError: no MPI library could be loaded" in last and "pip install 'distgnn[mpich]'" in last


def test_mpiexec_of_another_make_is_noticed():
    mpiexec = launch.find_mpiexec()
    command = launch.mpiexec_command(mpiexec, launch.mpi_flavor(mpiexec), 1)
    source = "from distgnn.system.launch import import_mpi; import_mpi()"
    environment = without_rank_variables() | {"DISTGNN_RANKS": "3"}
    command += [sys.executable, "-c", source]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert answer.returncode != 0
    assert "mpiexec started 3 ranks, but the MPI library" in answer.stderr and "sees 1" in answer.stderr


# threads


def test_ranks_sleep_while_waiting_only_where_cores_are_short(monkeypatch):
    monkeypatch.setattr(launch, "available_cores", lambda: 4)
    assert "MPIR_CVAR_ENABLE_HEAVY_YIELD" not in launch.rank_environment(4, 1, "mpich")
    assert launch.rank_environment(4, 2, "mpich")["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"
    assert launch.rank_environment(8, 1, "openmpi")["OMPI_MCA_mpi_yield_when_idle"] == "1"
    assert launch.rank_environment(4, 2, "intel")["NUMBA_NUM_THREADS"] == "2"
    monkeypatch.setenv("MPIR_CVAR_ENABLE_HEAVY_YIELD", "0")
    assert launch.rank_environment(4, 2, "mpich")["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "0"


@pytest.mark.parametrize(("num_ranks", "threads"), [(0, None), (-1, 1), (2, 0)])
def test_counts_below_one_are_refused(num_ranks, threads):
    with pytest.raises(InputError, match="at least 1"):
        launch.run_under_mpi([], num_ranks, threads)


@pytest.mark.parametrize(("text", "threads"), [("3", "3"), ("4,2", ""), ("auto", ""), ("0", "")])
def test_the_users_threads_are_each_ranks_or_refused(monkeypatch, text, threads):
    seen = recorded_command(monkeypatch)
    monkeypatch.delenv("DISTGNN_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    if threads:
        launch.run_program(["true"], 2)
        assert {seen[0][1][name] for name in ("DISTGNN_NUM_THREADS", "OMP_NUM_THREADS")} == {threads}
        return
    with pytest.raises(InputError, match=f"OMP_NUM_THREADS={text}: expected a positive number"):
        launch.run_program(["true"], 2)


@pytest.mark.parametrize("name", ["OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"])
def test_what_binds_all_ranks_to_the_same_cores_is_named(monkeypatch, name):
    seen = recorded_command(monkeypatch)
    for other in BINDING:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "0-1")
    with pytest.raises(InputError, match=f"{name}=0-1 binds all ranks of a machine to the same cores: unset it"):
        launch.run_program(["true"], 2)
    launch.run_program(["true"], 1)
    monkeypatch.setenv("OMP_PROC_BIND", "FALSE")
    launch.run_program(["true"], 2)
    assert len(seen) == 2


def test_no_folder_for_temporary_files_is_one_line(monkeypatch):
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(launch.tempfile, "gettempdir", none)
    for start in (lambda: launch.run_program(["true"], 2), lambda: call.launch(print, ranks=2)):
        with pytest.raises(RunError, match=r"No usable temporary directory .* set TMPDIR to a folder that can be"):
            start()


@pytest.mark.slow
def test_closed_streams_do_not_end_a_call(tmp_path):
    source = f"import distgnn; open({str(tmp_path / 'out')!r}, 'w').write(str(distgnn.launch(int, ('7',), 2)))"
    command = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-c", source]
    assert subprocess.run(command, env=without_rank_variables(), timeout=900, check=False).returncode == 0
    assert (tmp_path / "out").read_text() == "[7, 7]"


# running


def test_every_rank_gets_the_arguments_and_the_exit_code_comes_back(tmp_path, monkeypatch):
    seen = recorded_command(monkeypatch)
    monkeypatch.setattr(launch, "threads_per_rank", lambda num_ranks: 3)
    assert launch.run_under_mpi(["train", "parts/"], 2) == 7
    command, environment = seen[0]
    assert command[-5:] == [sys.executable, "-m", "distgnn.cli", "train", "parts/"]
    assert command[command.index("-n") + 1] == "2"
    assert environment["NUMBA_NUM_THREADS"] == "3" and environment["DISTGNN_RANKS"] == "2"


def test_the_terminal_is_told_only_where_there_is_one(monkeypatch):
    seen = recorded_command(monkeypatch)
    monkeypatch.setenv("DISTGNN_TERMINAL", "1x1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    launch.run_under_mpi([], 1)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((97, 31)))
    monkeypatch.setattr(sys, "stderr", sys.__stdout__)
    launch.run_under_mpi([], 1)
    assert [environment.get("DISTGNN_TERMINAL") for _, environment in seen] == [None, "97x31"]
    assert seen[0][1]["TTY_COMPATIBLE"] == "0"


def recorded_command(monkeypatch) -> list[tuple[list[str], dict[str, str]]]:
    seen = []
    monkeypatch.setattr(launch, "supervise", lambda *given, **_: seen.append(given[:2]) or 7)
    return seen


def test_a_file_of_hosts(tmp_path):
    file = tmp_path / "hosts.txt"
    file.write_text("# two machines\nnode-1\nnode2.local:3  # big\nnode3 slots=2\n")
    assert read_hosts(str(file)) == [("node-1", 1), ("node2.local", 3), ("node3", 2)]
    for text, says in (("node1; rm -rf /", "line 1: expected NAME"), ("a:0", "line 1"), ("# none", "names no host")):
        file.write_text(text)
        with pytest.raises(InputError, match=says):
            read_hosts(str(file))
    with pytest.raises(InputError, match="no hosts can be read"):
        read_hosts(str(tmp_path / "missing"))


@pytest.mark.parametrize(("text", "flavor"), [("HYDRA build", "mpich"), ("mpiexec (Open MPI) 5.0.11", "openmpi")])
def test_hosts_become_options_of_mpiexec(fake_mpiexec, monkeypatch, text, flavor):
    program, seen = fake_mpiexec(text), []

    def run(command, environment, graceful, proxies, machines, **_):
        assert machines == 2
        assert proxies == (flavor == "mpich")
        listed = Path(command[command.index("-f") + 1]).read_text() if "-f" in command else ""
        seen.append((command, environment, listed))
        return 0

    monkeypatch.setattr(launch, "supervise", run)
    assert launch.run_under_mpi(["train", "parts"], [("a", 1), ("b", 2)], 4, graceful=True) == 0
    command, environment, listed = seen[0]
    assert command[0] == program and command[command.index("-n") + 1] == "3" and command[-2:] == ["train", "parts"]
    assert environment["OMP_NUM_THREADS"] == "4" and environment["DISTGNN_RANKS"] == "3"
    if flavor == "openmpi":
        assert command[command.index("--host") + 1] == "a:1,b:2" and "OMP_NUM_THREADS" in command
    else:
        assert listed == "a:1\nb:2\n" and not Path(command[command.index("-f") + 1]).exists()


def test_torch_finds_quiet_threads_and_large_pages_unless_the_user_has_chosen(monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "THP_MEM_ALLOC_ENABLE"):
        monkeypatch.delenv(name, raising=False)
    assert launch.torch_environment() == {"GOMP_SPINCOUNT": "1000", "THP_MEM_ALLOC_ENABLE": "1"}
    assert launch.rank_environment(2, 1, "mpich").items() >= launch.torch_environment().items()
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setenv("THP_MEM_ALLOC_ENABLE", "0")
    assert launch.torch_environment() == {}
