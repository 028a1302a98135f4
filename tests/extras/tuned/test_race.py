"""Recipe tuned: the best of a table on validation, on any ranks; what is given stays; its line trains the run again."""

import re
import shlex

import pytest

import distgnn as dg
from distgnn.config import Settings, read_sections
from distgnn.errors import InputError
from distgnn.extras.tuned import settings as table
from distgnn.fitting.on_rank import Job, train_job
from distgnn.partition import partition_graph, read_manifest

EASY = "communities:nodes=400,communities=8,avg_degree=6,feats=8,classes=4,noise=0.1,mixing=0.1"
SMALL = {"hidden_feats": 8, "num_layers": 2, "norm": "none"}
FEW = {
    "slow": SMALL | {"model": "gcn", "lr": 1e-6},
    "fast": SMALL | {"model": "gcn", "lr": 0.05, "head": "linear"},
    "no loss": SMALL | {"model": "sage", "lr": 1e30},
    "too wide": SMALL | {"model": "gat", "num_heads": 3, "lr": 0.01},
}


@pytest.fixture
def few_settings(monkeypatch, tmp_path):
    """A table of which one setting learns, one does not, one diverges, and one goes with no graph."""
    monkeypatch.setattr(table, "FEW_LABELS", FEW)
    monkeypatch.setenv("DISTGNN_CACHE", str(tmp_path / "cache"))


def test_the_best_is_chosen_and_its_line_trains_it_again(run, tmp_path, few_settings):
    parts = tmp_path / "parts"
    partition_graph(EASY, 1, parts)
    words = ["--recipe", "tuned", "--epochs", 32, "--seed", 3, "--run-dir", tmp_path / "run", "--log", ""]
    code, _, err = run("train", parts, *words)
    assert code == 0, err
    assert re.search(r"leaves too wide out: hidden_feats is 8: expected a multiple", err)
    assert re.search(r"leaves no loss out: the loss is nan", err)
    assert "2 epochs, 1 of 3: slow: valid accuracy" in err and "4 epochs, 1 of 2" in err
    line = next(line for line in err.splitlines() if line.startswith("distgnn train "))
    assert "recipe tuned chose fast" in err and "--seed 3" in line and "--lr 0.05" in line
    code, _, err = run(*shlex.split(line)[1:], "--run-dir", tmp_path / "again", "--log", "")
    assert code == 0, err
    first, again = (dg.load_result(tmp_path / name) for name in ("run", "again"))
    assert first.losses == again.losses and 10 < len(first.losses) <= 32
    assert not (tmp_path / "run-tries").exists()
    code, _, err = run(
        "train", parts, *words[:2], "--epochs", 34, "--resume", "--run-dir", tmp_path / "run", "--log", ""
    )
    assert code == 0 and "recipe" not in err
    assert read_sections(tmp_path / "run" / "config.toml")["train"]["lr"] == 0.05


def test_fit_trains_the_chosen_one_with_each_seed(few_settings):
    data = EASY
    found = dg.fit(data, recipe="tuned", ranks=1, epochs=32, runs=2, quiet=True, lr_schedule="cosine")
    alone = dg.fit(data, "gcn", ranks=1, epochs=32, quiet=True, lr_schedule="cosine", **SMALL, lr=0.05, head="linear",
                   feat_norm="standardize", patience=0)  # fmt: skip
    assert len(found) == 2 and found[0].losses == alone.losses


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": lambda graph: None}, "chooses among models by name, by one split"),
        ({"folds": 3}, "chooses among models by name, by one split"),
        ({"task": "regression", "metric": "accuracy"}, "metric accuracy is not for task"),
        ({"model": "rgcn"}, "needs edge types|goes with what is given"),
    ],
)
def test_what_cannot_be_chosen_is_refused(options, says, few_settings):
    with pytest.raises(InputError, match=says):
        dg.fit(EASY, recipe="tuned", ranks=1, epochs=2, quiet=True, **options)


def test_without_vertices_for_validation_it_is_refused(refused, made, tmp_path):
    data = dg.load_graph(str(made / "graph"))
    data.valid = None
    partition_graph(data, 1, tmp_path / "parts")
    refused("train", tmp_path / "parts", "--recipe", "tuned", "--run-dir", tmp_path / "run",
            says="chooses by vertices for validation: leave it out of a graph without them")  # fmt: skip


@pytest.mark.mpi(2)
def test_ranks_choose_what_one_process_chooses(comm, shared_tmp_path, few_settings):
    parts = str(shared_tmp_path / "parts")
    if comm.rank == 0:
        partition_graph(EASY, 2, parts)
    comm.barrier()
    settings = Settings().with_options({"epochs": 32, "run_dir": str(shared_tmp_path / "run")})
    summary = train_job(
        Job(parts, read_manifest(parts), settings, speak=False, recipe="tuned", given={"epochs"})
    ).summary
    assert (summary["ranks"], read_sections(shared_tmp_path / "run" / "config.toml")["train"]["lr"]) == (2, 0.05)
