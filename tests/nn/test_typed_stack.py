"""Models of types: layers beside PyG's with the same weights, and P ranks beside one process."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from against_dgl import default_float64
from cut_graphs import on_rank_0
from torch.nn import functional
from typed_parts import CLASSES, random_typed, typed_graph

from distgnn import nn as dnn
from distgnn.config import ModelConfig, TrainConfig
from distgnn.graph.task_rows import rows_of_task
from distgnn.train import Trainer

NAMES = ("rgcn", "rgat", "hgt")


def whole_graph(seed=0):
    """Papers have classes and a split; venues have no features."""
    whole, random = random_typed(seed), np.random.default_rng(5)
    parts = random.integers(0, 3, whole.counts["paper"])
    whole.columns["paper"] |= {f"{name}_mask": parts == place for place, name in enumerate(("train", "valid", "test"))}
    del whole.columns["venue"]["feats"]
    return whole


def plain_pyg(model, whole):
    """The model of PyG's layers, with its weights: (data, tables by type) to logits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric import nn as pyg

    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convs, width, heads = torch.nn.ModuleList(), model.config.hidden_feats, model.config.num_heads
            for layer, conv in enumerate(model.convs):
                keys, last = conv.relations, layer == len(model.convs) - 1
                out = CLASSES if last else width
                if model.config_name == "hgt":
                    made = pyg.HGTConv(width, width, (list(conv.kqv_lin.lins), keys), heads)
                    made.load_state_dict(conv.state_dict())
                elif model.config_name == "rgcn":
                    made = pyg.HeteroConv(
                        {key: pyg.SAGEConv(width, out, root_weight=False, bias=False) for key in keys}
                    )
                    for number, key in enumerate(keys):
                        made.convs[key].lin_l.weight.data = conv.weight_of(number).detach().T.clone()
                else:
                    each = {"heads": heads, "concat": not last, "add_self_loops": False, "bias": False}
                    width_of_head = out if last else out // heads
                    made = pyg.HeteroConv({key: pyg.GATConv(width, width_of_head, **each) for key in keys})
                    for key in keys:
                        name, layer_of = "__".join(key), made.convs[key]
                        layer_of.lin.weight.data = conv.fc[name].weight.detach().clone()
                        layer_of.att_src.data, layer_of.att_dst.data = (
                            one[name].detach().clone() for one in (conv.attn_l, conv.attn_r)
                        )
                self.convs.append(made)

        def forward(self, data, tables):
            rows = {kind: stem(data[kind].x).relu() for kind, stem in model.stems.items()} | tables
            for layer, conv in enumerate(self.convs):
                ours = model.convs[layer]
                if layer:
                    norm = model.norms[layer - 1]
                    rows = {kind: (norm[kind](some) if kind in norm else some).relu() for kind, some in rows.items()}
                edges = {key: data[key].edge_index for key in ours.relations}
                if model.config_name == "hgt":
                    rows = rows | {kind: some for kind, some in conv(rows, edges).items() if some is not None}
                    continue
                made = conv(rows, edges)
                rows = {kind: loop(rows[kind]) + made.get(kind, 0) for kind, loop in ours.loops.items()}
            return model.read(rows["paper"]) if model.config_name == "hgt" else rows["paper"]

    return Plain()


@pytest.mark.mpi(3)
@default_float64()
def test_models_by_name_give_what_pyg_gives_with_the_same_weights(comm):
    pytest.importorskip("torch_geometric")
    whole = whole_graph()
    data, graph = whole.to_pyg(), typed_graph(whole, comm)
    rows = rows_of_task(graph, "paper")
    warnings.filterwarnings("ignore", message="There exist node types")  # of HeteroConv: our loops update them
    for name in NAMES:
        for options in ({}, {"num_bases": 2}) if name == "rgcn" else ({},):
            config = ModelConfig(name, hidden_feats=8, num_layers=2, num_heads=4, dropout=0.0, **options)
            torch.manual_seed(1)
            model = dnn.model_for(config, graph)
            tables = {kind: table.weight.whole() for kind, table in model.tables.items()}
            assert set(tables) == {"venue"}, "field reaches no paper"
            logits = rows.gather_rows(model(graph, rows.local_feats), root=None)
            expected = plain_pyg(model, whole)(data, tables)
            np.testing.assert_allclose(logits, expected.detach().numpy(), rtol=1e-9, atol=1e-9, err_msg=name)
            called = {one for one in model.modules() if type(one).forward is not torch.nn.Module.forward}
            seen = set()
            for module in called:
                module.register_forward_hook(lambda module, given, out, seen=seen: seen.add(module))
            watched = rows.gather_rows(model(graph, rows.local_feats), root=None)
            np.testing.assert_allclose(watched, logits, rtol=1e-12, atol=1e-12, err_msg=name)
            left = [place for place, one in model.named_modules() if one in called - seen]
            assert all("out_lin" in place for place in left), left  # of types that no arc leads to


def numbers(records):
    keep = ("loss", "valid_metric", "test_metric")
    return [[one[name] for name in keep if name in one] for one in records]


@pytest.mark.mpi(3)
@default_float64()
def test_runs_are_those_of_one_process(comm, tmp_path):
    """Losses and metrics with dropout, tables and clipped gradients; stopped runs go on, also on other ranks."""
    from mpi4py import MPI

    whole, folder = whole_graph(), comm.bcast(str(tmp_path), root=0)
    for place, name in enumerate(NAMES):
        config = ModelConfig(name, hidden_feats=8, num_layers=3, num_heads=4, dropout=0.4)
        train = TrainConfig(
            epochs=4, lr=0.05, clip_grad=0.5, log=None, eval_every=1, optimizer=("adam", "sgd", "adamw")[place]
        )

        def run(ranks, config=config, train=train, **options):
            graph = typed_graph(whole, ranks)
            torch.manual_seed(7)
            model = dnn.model_for(config, graph)
            trainer = Trainer(model, graph, dataclasses.replace(train, **options))
            result = trainer.fit()
            return numbers(result.records), {key: _whole(one) for key, one in model.state_dict().items()}

        alone, weights = on_rank_0(comm, lambda run=run: run(MPI.COMM_SELF))
        assert len({tuple(one) for one in alone}) == 4, name
        many, ours = run(comm)
        np.testing.assert_allclose(many, alone, rtol=1e-9, err_msg=name)
        place = {"run_dir": f"{folder}/{name}", "checkpoint_every": 1}
        run(comm, **place, epochs=2)
        again, theirs = run(comm, **place, resume=True)
        assert again == many, name
        for key, one in ours.items():
            assert torch.equal(theirs[key], one), (name, key)
            torch.testing.assert_close(one, weights[key], rtol=1e-9, atol=1e-9)
        if comm.rank == 0:
            mine = {"run_dir": f"{folder}/{name}", "resume": True, "epochs": 5}
            on_one, _ = run(MPI.COMM_SELF, **mine)
            straight, _ = run(MPI.COMM_SELF, epochs=5)
            np.testing.assert_allclose(on_one, straight, rtol=1e-9, err_msg=f"{name} on one rank")
        comm.Barrier()


def _whole(one):
    return (one.whole() if hasattr(one, "whole") else one).detach()


def test_tables_are_made_for_types_that_reach_the_target_only():
    from mpi4py import MPI

    graph = typed_graph(whole_graph(), MPI.COMM_SELF)
    with torch.no_grad():
        model = dnn.model_for(ModelConfig("rgcn", hidden_feats=4, num_layers=1), graph).double()
    assert set(model.tables) == {"venue"} and set(model.stems) == {"paper", "author"}
    assert [key[2] for key in model.convs[0].relations] == ["paper"] * 3
    out = model(graph, rows_of_task(graph).local_feats)
    functional.cross_entropy(out, graph["paper"].y.to_local()).backward()
    assert model.tables["venue"].weight.grad is None or model.tables["venue"].weight.grad.shape == (17, 4)
