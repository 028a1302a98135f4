"""What ranks agree on before anything is loaded: the program, and the partition folder."""

import pytest
from cut_graphs import random_graph

import distgnn
from distgnn.errors import InputError, RunError
from distgnn.graph.loader import load
from distgnn.partition import partition_graph
from distgnn.train.run.machine import check_program


@pytest.mark.mpi(2)
def test_another_version_on_one_rank_is_named_on_all(comm, monkeypatch):
    monkeypatch.setattr(distgnn, "__version__", ["0.1.0", "0.2.0"][comm.rank])
    with pytest.raises(RunError, match=r"ranks differ in distgnn: rank 0 has 0\.1\.0, rank 1 has 0\.2\.0") as caught:
        check_program(comm)
    assert caught.value.agreed


@pytest.mark.mpi(2)
def test_another_partition_folder_on_one_rank_and_a_wrong_name_are_named_on_all(comm, shared_tmp_path):
    if comm.rank == 0:
        for seed in (0, 1):
            partition_graph(random_graph(seed), 2, shared_tmp_path / f"parts-{seed}", method="libra")
    comm.Barrier()
    with pytest.raises(RunError, match="ranks differ in partition") as caught:
        load(str(shared_tmp_path / f"parts-{comm.rank}"), comm=comm)
    assert caught.value.agreed
    with pytest.raises(InputError, match=r"^unknown option 'warmup': did you mean 'warmup_epochs'") as caught:
        load(str(shared_tmp_path / "parts-0"), comm=comm, warmup=0.5)
    assert caught.value.agreed
