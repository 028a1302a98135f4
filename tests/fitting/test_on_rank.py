"""Several seeds and folds over one cut: those of single calls, and each labelled vertex tested once."""

import gc

import numpy as np
import pytest
import torch
from cut_graphs import random_graph

import distgnn as dg
from distgnn.config import Settings
from distgnn.errors import InputError
from distgnn.fitting.on_rank import Job, train_on_this_rank
from distgnn.partition import read_manifest
from distgnn.train.folds import folds_of
from distgnn.train.run.run_folder import read_metrics

pyg = pytest.importorskip("torch_geometric.nn")
SMALL = {"ranks": 1, "quiet": True, "hidden_feats": 8, "epochs": 2}


def test_seeds_are_those_of_single_calls(graph, cache):
    several = dg.fit(graph, "sage", runs=2, seed=3, **SMALL)
    for seed, one in zip((3, 4), several, strict=True):
        alone = dg.fit(graph, "sage", seed=seed, **SMALL)
        assert one.losses == alone.losses and torch.equal(one.predict(), alone.predict())
    values = [one.test_metric for one in several]
    assert several.summary["test_metric"] == pytest.approx(np.mean(values))
    assert [one["test_metric"] for one in several.metrics.values()] == values
    shown = f"2 seeds: test accuracy {100 * np.mean(values):.2f} % ± {100 * np.std(values, ddof=1):.2f}"
    assert str(several).startswith(shown)
    kept, folder = several[1], several.run
    del several
    assert kept.predict().shape == (60, 4)
    one = kept = None
    gc.collect()
    assert not folder.exists()


def keeps_a_column(graph):
    graph.ndata["kept"] = graph.x * 2
    return pyg.GCN(graph.num_feats, 8, 2, graph.num_classes)


@pytest.mark.parametrize("model", ["sage", keeps_a_column])
def test_each_vertex_is_tested_once(graph, tmp_path, cache, model):
    options = SMALL | {"out": tmp_path / "out", "overwrite": True}
    options.pop("hidden_feats") if callable(model) else None
    results = dg.fit(graph, model, folds=3, **options)
    assert str(results).startswith("3 folds: test accuracy") and len(results) == 3
    part = dg.load(tmp_path / "out" / "parts", say=None).plain
    fold_of = folds_of(part, 3, 0)[np.argsort(part.owned_ids)]
    labels = torch.from_numpy(graph.labels)
    for fold, one in enumerate(results):
        right = one.predict().argmax(1) == labels
        for split, place in (("test", fold), ("valid", (fold + 1) % 3)):
            mask = torch.from_numpy(fold_of == place)
            assert one.summary[f"{split}_metric"] == pytest.approx(float(right[mask].double().mean()))
    assert dg.load_result(tmp_path / "out" / "run").metrics == results.metrics


class Bare(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8, 4))

    def forward(self, x):
        return x @ self.weight


def test_a_module_is_drawn_anew_for_each_seed(graph, cache):
    options = {name: SMALL[name] for name in ("ranks", "quiet")}
    one, two = dg.fit(graph, pyg.GCN(8, 8, 2, 4), runs=2, epochs=1, **options)
    assert not torch.equal(next(one.model.parameters()), next(two.model.parameters()))
    for options_of, says in (
        ({"model": Bare(), "runs": 2}, "nothing draws weight: give Bare a reset_parameters"),
        ({"folds": 2}, "give a number from 3 on"),
        ({"folds": 3, "runs": 2}, "runs and folds are both given"),
        ({"folds": 99}, "folds is 99: only 60 vertices have labels"),
        ({"runs": 2, "callbacks": [dg.LivePlot()]}, "LivePlot shows one run"),
    ):
        with pytest.raises(InputError, match=says):
            dg.fit(graph, **options_of, epochs=1, **options)


@pytest.mark.mpi(3)
def test_late_rows_of_one_run_are_none_of_the_next(comm, shared_tmp_path):
    if comm.rank == 0:
        dg.partition_graph(random_graph(4), comm.size, shared_tmp_path / "parts", say=lambda line: None)
    comm.Barrier()
    losses = []
    for name, seed, runs in (("both", 5, 2), ("alone", 6, 1)):
        options = {"algorithm": "cd-1", "seed": seed, "runs": runs, "epochs": 4, "hidden_feats": 8, "log": None}
        run_dir = shared_tmp_path / name
        inside = run_dir / "seed-6" if runs > 1 else run_dir
        settings = Settings().with_options(options | {"run_dir": str(run_dir)}).checked()
        parts = str(shared_tmp_path / "parts")
        train_on_this_rank(Job(parts, read_manifest(parts), settings, speak=False))
        comm.Barrier()
        losses.append([one["loss"] for one in read_metrics(inside / "metrics.jsonl")])
    assert losses[0] == losses[1]
