"""Hosts of a batch system's job: ranks start here where it has this one only, elsewhere where that can be done."""

import socket

import pytest

from distgnn.errors import InputError, RunError
from distgnn.system import hosts, launch

HERE = socket.gethostname()


@pytest.fixture
def batch(monkeypatch, tmp_path):
    """Set a scheduler's variables; a value that ends in a newline becomes a file, and its path the value."""
    for name in (*hosts.BATCH_VARIABLES, "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_NNODES", "SLURMD_NODENAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(hosts.shutil, "which", lambda name: None)

    def set_variables(variables: dict[str, str]) -> None:
        for name, value in variables.items():
            if value.endswith("\n"):
                (tmp_path / name).write_text(value)
                value = str(tmp_path / name)
            monkeypatch.setenv(name, value)

    return set_variables


ONE_HOST = {
    "slurm": {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": HERE, "SLURM_NNODES": "1"},
    "a node's container": {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node17", "SLURMD_NODENAME": "node17"},
    "a container without its name": {"SLURM_JOBID": "7", "SLURM_NODELIST": "node17", "SLURM_NNODES": "1"},
    "a job id alone": {"SLURM_JOB_ID": "7"},
    "pbs": {"PBS_NODEFILE": f"{HERE}\n{HERE}\n"},
    "lsf": {"LSB_MCPU_HOSTS": f"{HERE} 16", "LSB_HOSTS": f"{HERE} {HERE}"},
    "sge": {"PE_HOSTFILE": f"{HERE}.cluster.org 8 all.q@{HERE} UNDEFINED\n"},
    "cobalt": {"COBALT_NODEFILE": f"{HERE}\n"},
    "kubernetes, mpich": {"HYDRA_HOST_FILE": "# hosts\nlocalhost:2\n"},
    "kubernetes, open mpi": {"OMPI_MCA_orte_default_hostfile": f"{HERE} slots=2\n"},
    "flux": {"FLUX_JOB_ID": "1", "FLUX_URI": "local:///run/flux/local"},
}


@pytest.mark.parametrize("variables", ONE_HOST.values(), ids=ONE_HOST)
def test_ranks_start_here_where_the_job_has_this_host_only(batch, variables, monkeypatch):
    batch(variables)
    assert hosts.on_this_machine()
    seen = []
    monkeypatch.setattr(launch, "supervise", lambda command, environment, *_, **__: seen.append(environment))
    launch.run_under_mpi([], 1)
    assert not set(seen[0]) & set(hosts.BATCH_VARIABLES)  # mpiexec would ask them


OTHER_HOSTS = {
    "srun": {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[01-03,7],login", "SLURM_NNODES": "5"},
    "ssh": {"PBS_NODEFILE": "n1\nn2\n"},
    "blaunch": {"LSB_MCPU_HOSTS": f"{HERE} 4 n2 4"},
    "qrsh": {"PE_HOSTFILE": "n1 8 q U\nn2 8 q U\n"},
}


@pytest.mark.parametrize(("starter", "variables"), OTHER_HOSTS.items(), ids=OTHER_HOSTS)
def test_other_hosts_need_what_starts_ranks_there(batch, monkeypatch, starter, variables):
    batch(variables)
    with pytest.raises(RunError, match=rf"has \d hosts \(.*, and {starter}, which starts ranks there, is not on"):
        hosts.on_this_machine()
    monkeypatch.setattr(hosts.shutil, "which", lambda name: f"/usr/bin/{name}" if name == starter else None)
    assert not hosts.on_this_machine()


def test_a_name_without_an_address_is_refused(batch, monkeypatch):
    assert hosts.check_names([("localhost", 2)]) == [("localhost", 2)]
    with pytest.raises(InputError, match=r"no address is known of nowhere\.invalid: correct the name"):
        hosts.check_names([("localhost", 1), ("nowhere.invalid", 1)])
    monkeypatch.setenv("HYDRA_LAUNCHER", "own")
    assert hosts.check_names([("nowhere.invalid", 1)])


def test_a_file_that_cannot_be_read_is_said(batch):
    batch({"PBS_NODEFILE": "/nowhere/aux/123"})
    with pytest.raises(RunError, match=r"PBS_NODEFILE\) names hosts that cannot be read, .* `env -u PBS_NODEFILE"):
        hosts.on_this_machine()


TASKS = {
    "srun started 2 tasks": {"SLURM_STEP_NUM_TASKS": "2"},
    "torchrun started 4 processes": {"WORLD_SIZE": "4", "RANK": "1", "TORCHELASTIC_RUN_ID": "none"},
    "flux run started 8 tasks": {"FLUX_JOB_SIZE": "8", "FLUX_TASK_RANK": "3"},
}


@pytest.mark.parametrize(("says", "variables"), TASKS.items())
def test_tasks_without_mpi_between_them_are_refused(batch, says, variables):
    batch({"SLURM_STEP_NUM_TASKS": "1", "WORLD_SIZE": "4"})  # one task, or a world of torch alone, is no reason
    hosts.check_tasks()
    batch(variables)
    with pytest.raises(RunError, match=f"{says} without MPI between them"):
        launch.run_under_mpi(["check"], 2)
