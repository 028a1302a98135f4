"""Link prediction learns what plain PyTorch learns from the same weights and negatives."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph
from torch.nn import functional

import distgnn as dg
from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import model_for
from distgnn.train import Trainer

EPOCHS = 5


def plain_losses(data, weights: dict, negatives: list[np.ndarray], kept: list[np.ndarray]) -> list[float]:
    """Two mean SAGE layers over a dense matrix, layer norm, dropout that keeps `kept`, a dot product, torch's Adam."""
    sources, targets, _ = data.edge_list().arcs()
    matrix = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
    matrix.index_put_(
        (torch.from_numpy(targets).long(), torch.from_numpy(sources).long()), torch.ones(1).double(), True
    )
    matrix /= matrix.sum(1, keepdim=True).clamp(min=1)
    weights = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
    optimizer = torch.optim.Adam(weights.values(), lr=0.01)

    def layer(rows, number):
        own, neigh, bias = (
            weights[f"encoder.convs.{number}.{name}"] for name in ("fc_self.weight", "fc_neigh.weight", "fc_self.bias")
        )
        return rows @ own.T + bias + matrix @ rows @ neigh.T

    losses = []
    for drawn, mask in zip(negatives, kept, strict=True):
        hidden = layer(torch.from_numpy(data.feats).double(), 0)
        norm = (weights[f"encoder.norms.0.{name}"] for name in ("weight", "bias"))
        hidden = torch.relu(functional.layer_norm(hidden, hidden.shape[1:], *norm)) * torch.from_numpy(2.0 * mask)
        rows = layer(hidden, 1)
        joined, apart = ((rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(1) for pairs in (data.edges, drawn))
        loss = functional.softplus(-joined).mean() + functional.softplus(apart).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.mpi(2)
def test_losses_of_link_prediction(comm):
    data = random_graph(9).split_links(0.1, 0.2)
    graph = dist_graph(data, comm)
    torch.manual_seed(0)
    config = ModelConfig(hidden_feats=8, num_layers=2, dropout=0.5)
    trainer = Trainer(model_for(config, graph, "link"), graph, TrainConfig(task="link", epochs=EPOCHS, lr=0.01))
    weights = {name: tensor.detach().clone() for name, tensor in trainer.model.state_dict().items()}
    negatives, pairs = [], graph.edge_pairs("train")
    for graph.step in range(EPOCHS):
        mine = comm.allgather((pairs.ids, dg.negative_edges(graph, pairs)))
        drawn = np.empty((pairs.num_pairs, 2), dtype=np.int64)
        for ids, rows in mine:
            drawn[ids] = rows
        negatives.append(drawn)
    seen = []  # hidden rows of this rank; which of them dropout kept, where ReLU did
    trainer.model.encoder.convs[1].register_forward_pre_hook(
        lambda module, given: seen.append(given[1].detach().numpy() != 0) if module.training else None
    )
    losses = trainer.fit().losses
    kept = []
    for step in seen:
        mask = np.zeros((data.num_nodes, step.shape[1]))
        for ids, rows in comm.allgather((graph.owned_ids, step)):
            mask[ids] = rows
        kept.append(mask)
    np.testing.assert_allclose(losses, plain_losses(data, weights, negatives, kept), rtol=1e-10)
