"""Every model by name beside the same model of DGL's own layers: logits, loss and every gradient; weights both ways."""

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, dist_graph, gather_rows, random_graph
from torch.nn import functional

import distgnn
from distgnn.comm import sum_over_ranks
from distgnn.config import EDGE_MODELS, MODELS, ModelConfig, TrainConfig
from distgnn.errors import RunError
from distgnn.nn import model_for
from distgnn.train import Trainer
from distgnn.train.export.dgl import DGLModel
from distgnn.train.export.plain_stack import GraphSizes
from distgnn.train.loss import rank_loss

TYPED = (*EDGE_MODELS, "rgcn")
VARIANTS = [ModelConfig(name, weighted=name in ("sage", "gcn", "gin", "gat", "gcn2", "appnp")) for name in MODELS]
VARIANTS += [ModelConfig("sage", norm="graph", head="max"), ModelConfig("appnp", norm="none", num_layers=1)]
VARIANTS += [ModelConfig("gat", norm="batch", head="cat", block="residual")]
VARIANTS += [ModelConfig("gcn", norm="pair", block="residual", residual="identity")]
VARIANTS += [ModelConfig(name, block="residual", head="linear") for name in ("sage", "gcn", "gin", "gatv2")]
VARIANTS += [ModelConfig(name, block="preact") for name in ("sage", "gcn", "gat")]
VARIANTS += [ModelConfig("gin", stem="linear", norm="none"), ModelConfig("gatv2", block="preact")]
VARIANTS += [ModelConfig("rgcn", num_bases=2, norm="none", remat=True), ModelConfig("gcn2", norm="batch")]
VARIANTS += [ModelConfig("edgegat", norm="none", remat=True)]


def label(config: ModelConfig) -> str:
    extras = [config.block, config.head] + ["weighted"] * config.weighted
    return "-".join([config.name, config.norm, *extras])


def sizes_of(graph) -> GraphSizes:
    names = ("num_feats", "num_classes", "num_edge_feats", "num_relations", "num_node_types")
    return GraphSizes(**{name: getattr(graph, name) for name in names})


def on_whole(plain, data, rows) -> tuple[np.ndarray, float, dict[str, np.ndarray]]:
    """Logits, loss and gradients of a DGL model on DGL's graph."""
    whole = data.to_dgl(data.edge_list())
    logits = plain(whole, rows)
    train = whole.ndata["train_mask"]
    loss = functional.cross_entropy(logits[train], whole.ndata["label"][train])
    loss.backward()
    return logits.detach().numpy(), loss.item(), {name: p.grad.numpy() for name, p in plain.named_parameters()}


def on_ranks(model, graph) -> tuple[np.ndarray, float, dict[str, np.ndarray]]:
    logits = model(graph, graph.feats)
    loss = rank_loss(graph, logits)
    loss.backward()
    grads = {
        name: sum_over_ranks(graph.comm, (torch.zeros_like(p) if p.grad is None else p.grad).numpy())
        for name, p in model.named_parameters()
    }
    return gather_rows(graph, logits.detach()), graph.comm.allreduce(loss.item()), grads


def compare(data, graph, config: ModelConfig, rtol: float) -> None:
    config.hidden_feats, config.dropout = 8, 0.0
    torch.manual_seed(3)
    model, plain = model_for(config, graph).double(), DGLModel(config, sizes_of(graph)).double()
    plain.load_state_dict(model.state_dict())
    model.load_state_dict(plain.state_dict())
    feats = data.feats.toarray() if hasattr(data.feats, "toarray") else np.array(data.feats)
    expected = on_whole(plain, data, torch.from_numpy(feats).double())
    got = on_ranks(model, graph)
    np.testing.assert_allclose(got[0], expected[0], rtol=rtol, atol=rtol * np.abs(expected[0]).max())
    assert got[1] == pytest.approx(expected[1], rel=rtol)
    assert got[2].keys() == expected[2].keys()
    for name, grad in got[2].items():
        scale = np.abs(expected[2][name]).max()
        np.testing.assert_allclose(grad, expected[2][name], rtol=0, atol=rtol * (1 + scale), err_msg=name)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("config", VARIANTS, ids=label)
def test_a_model_equals_the_same_of_dgls_layers(comm, config):
    directed = bool(VARIANTS.index(config) % 2)
    data = random_graph(5, weighted=config.weighted, typed=config.name in TYPED, directed=directed)
    compare(data, dist_graph(data, comm), config, rtol=1e-9)  # float64 sums in another order, through three layers


@pytest.mark.slow
@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", ["sage", "gat", "rgcn"])  # a mean, attention, and arcs by type
def test_on_a_larger_graph(comm, graph_named, name):
    data, random = graph_named("hubs"), np.random.default_rng(0)
    if name in TYPED:
        data.edge_feats = random.standard_normal((data.num_edges, 8)).astype(np.float32)
        data.edge_types = random.integers(0, 4, data.num_edges)
    compare(data, dist_graph(data, comm), ModelConfig(name, num_layers=2), rtol=1e-8)


@pytest.mark.mpi(2)
def test_inverse_relations_of_a_directed_graph(comm):
    """Both directions: 3 relations and their inverses, against DGL on the arcs that the edge list names."""
    data = random_graph(6, typed=True, directed=DIRECTED)
    data.edge_feats = None
    edges = data.edge_list("both")
    graph = dist_graph(data, comm, direction="both")
    assert graph.num_relations == 6
    whole = data.to_dgl(edges)
    assert whole.num_edges() == edges.num_arcs and whole.edata["etype"].max() == 5
    config = ModelConfig("rgcn", 8, dropout=0.0)
    torch.manual_seed(3)
    model, plain = model_for(config, graph).double(), DGLModel(config, sizes_of(graph)).double()
    plain.load_state_dict(model.state_dict())
    expected = plain(whole, torch.from_numpy(data.feats).double()).detach()
    np.testing.assert_allclose(gather_rows(graph, model(graph, graph.feats).detach()), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", ["gcn", "rgcn", "edgegat"])  # weights, types and features of edges
def test_a_trained_run_in_three_lines(comm, tmp_path, name):
    """What ranks trained and predict equals what DGL predicts in one process."""
    data = random_graph(8, weighted=name == "gcn", typed=name in TYPED)
    graph = dist_graph(data, comm, dtype="float32")
    config = ModelConfig(name, 8, norm="batch", weighted=name == "gcn")
    run = comm.bcast(str(tmp_path / "run"))
    described = {"model": vars(config), "data": {"graph": graph.info}}
    trainer = Trainer(model_for(config, graph), graph, TrainConfig(epochs=3, run_dir=run), describe=described)
    trainer.fit()
    logits = gather_rows(graph, trainer.predict())
    plain = distgnn.to_dgl(run)
    whole = data.to_dgl(data.edge_list())
    with torch.no_grad():
        np.testing.assert_allclose(logits, plain(whole, whole.ndata["feat"]), rtol=1e-4, atol=1e-5)


def test_a_folder_that_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run folder"):
        distgnn.to_dgl(str(tmp_path))
    (tmp_path / "config.toml").write_text("[train]\nepochs = 3\n")
    with pytest.raises(RunError, match="trained from a script"):
        distgnn.to_dgl(str(tmp_path))
    (tmp_path / "config.toml").write_text('[model]\nname = "sage"\n')
    with pytest.raises(RunError, match="does not say what graph"):
        distgnn.to_dgl(str(tmp_path))
