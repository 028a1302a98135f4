"""Every model by name beside the same model of PyG's own layers: logits, and a trained run in three lines."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph

import distgnn
from distgnn import nn
from distgnn.config import EDGE_MODELS, MODELS, ModelConfig, TrainConfig
from distgnn.errors import InputError, RunError
from distgnn.nn import model_for
from distgnn.train import Trainer
from distgnn.train.export.plain_model import GraphSizes

pytest.importorskip("torch_geometric")
from distgnn.train.export.pyg import NO_WEIGHTS, PyGModel, load

TYPED = (*EDGE_MODELS, "rgcn")
VARIANTS = [ModelConfig(name, weighted=name in ("sage", "gcn")) for name in MODELS if name != "edgegat"]
VARIANTS += [ModelConfig("sage", norm="graph", head="max"), ModelConfig("appnp", norm="none", num_layers=1)]
VARIANTS += [ModelConfig("gat", norm="batch", head="cat", block="residual")]
VARIANTS += [ModelConfig("gcn", norm="pair", block="residual", residual="identity")]
VARIANTS += [ModelConfig(name, block="residual", head="linear") for name in ("sage", "gcn", "gin", "gatv2")]
VARIANTS += [ModelConfig(name, block="preact", input_dropout=0.2) for name in ("sage", "gcn", "gat")]
VARIANTS += [ModelConfig("gin", stem="linear", norm="none"), ModelConfig("gatv2", block="preact")]
VARIANTS += [ModelConfig("rgcn", num_bases=2, norm="none"), ModelConfig("gcn2", input_dropout=0.2)]


def columns_of(data, config: ModelConfig) -> dict:
    names = {"sage": ["edge_weight"], "gcn": ["edge_weight"]} if config.weighted else {}
    names |= {"gine": ["edge_attr"], "rgcn": ["edge_type", "node_type"]}
    return {name: data[name] for name in names.get(config.name, [])}


@pytest.mark.parametrize(
    "config", VARIANTS, ids=lambda config: f"{config.name}-{config.norm}-{config.block}-{config.head}"
)
def test_a_model_equals_the_same_of_pygs_layers(config):
    directed = bool(VARIANTS.index(config) % 2)
    config.hidden_feats, config.dropout = 8, 0.0
    data = random_graph(5, weighted=config.weighted, typed=config.name in TYPED, directed=directed)
    graph, theirs = whole_graph(data), data.to_pyg()
    torch.manual_seed(3)
    model = model_for(config, graph).double().eval()
    for parameter in model.parameters():  # biases too
        torch.nn.init.normal_(parameter, std=0.3)
    names = ("num_feats", "num_classes", "num_edge_feats", "num_relations", "num_node_types")
    plain = PyGModel(config, GraphSizes(**{name: getattr(graph, name) for name in names})).double().eval()
    load(plain, model.state_dict())
    expected = gather_rows(graph, model(graph, graph.feats).detach())
    for one in (plain, model.to_pyg()):
        got = one(theirs.x.double(), theirs.edge_index, **columns_of(theirs, config)).detach()
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.mpi(2)
@pytest.mark.parametrize(("feat_norm", "task"), [("none", "regression"), ("standardize,row-l2", "node")])
def test_a_trained_run_in_three_lines(comm, tmp_path, feat_norm, task):
    """Of raw features, whatever the run did to them."""
    data = random_graph(8, weighted=True)
    if task == "regression":
        data.labels, data.node_values = None, data.feats[:, :2] * 3
    graph = dist_graph(data, comm, dtype="float32", feat_norm=feat_norm)
    config = ModelConfig("gcn", 8, norm="batch", weighted=True)
    run = comm.bcast(str(tmp_path / "run"))
    described = {"model": vars(config), "data": {"graph": graph.info}, "train": {"task": task}}
    model = model_for(config, graph, task)
    trainer = Trainer(model, graph, TrainConfig(epochs=3, run_dir=run, task=task), describe=described)
    trainer.fit()
    logits = gather_rows(graph, trainer.predict())
    theirs = data.to_pyg()
    with torch.no_grad():
        plain = distgnn.to_pyg(run)
        np.testing.assert_allclose(logits, plain(theirs.x, theirs.edge_index, theirs.edge_weight), rtol=1e-4, atol=1e-5)
        with pytest.raises(InputError, match="trained with edge weights: give edge_weight"):
            plain(theirs.x, theirs.edge_index)


@pytest.mark.parametrize(
    "make", [lambda *sizes: nn.GCN2(*sizes, alpha=0.3, lambda_=1.5), lambda *sizes: nn.APPNP(*sizes, k=3, alpha=0.4)]
)
def test_a_model_whose_numbers_are_no_settings(make):
    data = random_graph(5)
    graph, theirs = whole_graph(data), data.to_pyg()
    model = make(graph.num_feats, 8, graph.num_classes).double().eval()
    plain = model.to_pyg()
    assert not plain.training and next(plain.parameters()).dtype == torch.float64
    expected = gather_rows(graph, model(graph, graph.feats).detach())
    np.testing.assert_allclose(plain(theirs.x.double(), theirs.edge_index).detach(), expected, rtol=1e-9, atol=1e-9)


class Mine(nn.GraphSAGE):
    pass


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda: nn.EdgeGAT(8, 8, 4, num_edge_feats=5), "PyG has no layer for edgegat: there are sage, gcn, "),
        (lambda: Mine(8, 8, 4), "Mine is a class of your own"),
        (lambda: torch.nn.Linear(8, 4), r"a run folder or a model of dg.nn \(sage, gcn, .*\), not Linear"),
    ],
)
def test_a_model_that_is_none_of_pygs_is_refused(model, says):
    with pytest.raises(InputError, match=says):
        distgnn.to_pyg(model())


def test_what_pyg_has_no_layer_for_is_refused():
    sizes = GraphSizes(8, 4, num_edge_feats=5)
    for config in [ModelConfig("edgegat"), *(ModelConfig(name, weighted=True) for name in NO_WEIGHTS)]:
        with pytest.raises(InputError, match=f"PyG has no layer for {config.name}.*; distgnn.to_dgl has it"):
            PyGModel(config, sizes)
    with pytest.raises(RunError, match=r"the weights do not fit the model: .* in one of them only"):
        load(PyGModel(ModelConfig("sage"), sizes), {})
