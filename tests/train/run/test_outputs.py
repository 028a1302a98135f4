"""Where a run's numbers go: its folder, records over all ranks, and what a trace that cannot be written does."""

import json
from pathlib import Path

import pytest
from cut_graphs import dist_graph, random_graph
from trainers import trainer_of

from distgnn.errors import InputError


@pytest.mark.mpi(2)
def test_the_run_folder(comm, shared_tmp_path):
    graph = dist_graph(random_graph(1), comm, dtype="float32")
    result = trainer_of(graph, epochs=6, eval_every=2, run_dir=str(shared_tmp_path / "run")).fit()
    comm.Barrier()
    folder = shared_tmp_path / "run"
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines == result.records
    assert [line["epoch"] for line in lines] == list(range(6))
    needed = {"loss", "seconds", "aggregate_seconds", "aggregate_seconds_mean", "wait_seconds", "wait_seconds_mean"}
    assert all(needed | {"sent_bytes"} <= line.keys() for line in lines)
    assert [line["epoch"] for line in lines if "valid_metric" in line] == [1, 3, 5]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary == result.summary
    assert len(summary["peak_rss_bytes"]) == summary["ranks"] == comm.size
    with pytest.raises(InputError, match="--overwrite"):
        trainer_of(graph, run_dir=str(folder))


@pytest.mark.mpi(3)
def test_records_have_the_waiting_of_each_exchange(comm):
    trainer = trainer_of(dist_graph(random_graph(1), comm, dtype="float32"))
    assert trainer.graph.transport.counters.trace is None  # off by default
    for epoch in range(2):
        record = trainer.train_epoch(epoch)
    waits = record["exchange_waits"]
    kinds = [name.split()[:2] for name in waits]
    assert [kind for _, kind in kinds] == ["broadcast", "reduce"] * 4  # 2 layers beyond the kept one, there and back
    assert [int(number) for number, _ in kinds] == list(range(8))
    for least, mean, most in waits.values():
        assert 0 <= least <= mean <= most
    assert sum(mean for _, mean, _ in waits.values()) <= record["wait_seconds_mean"] * 1.001
    assert record["wait_seconds_min"] <= record["wait_seconds_mean"] <= record["wait_seconds"]


@pytest.mark.mpi(2)
def test_a_trace_that_cannot_be_written_ends_no_finished_run(comm, tmp_path, capsys):
    folder = comm.bcast(str(tmp_path / "run"))
    trainer = trainer_of(dist_graph(random_graph(1), comm, dtype="float32"), epochs=3, run_dir=folder, trace=True)
    if comm.rank == 0:
        (Path(folder) / "trace").write_text("in its place")
    assert len(trainer.fit().losses) == 3
    if comm.rank == 0:
        assert "cannot write to the run folder" in capsys.readouterr().err
        assert (Path(folder) / "summary.json").is_file()
