"""A model by name on P ranks beside the same of DGL's own layers: logits, loss, every gradient; weights both ways."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph
from torch.nn import functional

from distgnn.comm import sum_over_ranks
from distgnn.config import EDGE_MODELS, ModelConfig
from distgnn.nn import model_for
from distgnn.train.export.dgl import DGLModel
from distgnn.train.export.plain_model import GraphSizes
from distgnn.train.metrics import rank_loss

TYPED = (*EDGE_MODELS, "rgcn")


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


def same_as_dgls(comm, config: ModelConfig, directed: bool) -> None:
    data = random_graph(5, weighted=config.weighted, typed=config.name in TYPED, directed=directed)
    compare(data, dist_graph(data, comm), config, rtol=1e-9)  # float64 sums in another order, through three layers


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
