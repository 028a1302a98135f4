"""Steps on cluster batches: the published formula, dense; what is dropped without history; the same on any ranks."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph
from torch.nn import functional as F

from distgnn.config import ModelConfig
from distgnn.datasets import GraphData
from distgnn.graph.batches import Batches
from distgnn.nn import build_model
from distgnn.train.loss import rank_loss

WIDTHS = (7, 8, 8, 4)  # kept aggregation; aggregated before the product; after it


class DenseSteps:
    """Three layers of mean aggregation written out; outside a batch rows and gradients are the last ones."""

    def __init__(self, data: GraphData, num_batches: int):
        adjacency = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.float64)
        for u, v in data.edges:
            adjacency[v, u] += 1
            if u != v:
                adjacency[u, v] += 1
        self.a = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
        self.x, self.labels = torch.from_numpy(data.feats.astype(np.float64)), torch.from_numpy(data.labels)
        self.train = torch.zeros(data.num_nodes, dtype=torch.bool)
        self.train[data.train] = True
        self.train &= self.labels >= 0
        self.scale = num_batches / int(self.train.sum())
        self.rows = [torch.zeros(data.num_nodes, width, dtype=torch.float64) for width in (8, 4)]
        self.grads = [torch.zeros(data.num_nodes, width, dtype=torch.float64) for width in (8, 4)]

    def step(self, batch: torch.Tensor, weights: list) -> list:
        """Gradients (of Wn, Ws, b) of each layer."""
        (n1, s1, b1), (n2, s2, b2), (n3, s3, b3) = weights
        into, out_of = self.a[batch], self.a[:, batch].T
        x, ax = self.x[batch], into @ self.x
        z1 = x @ s1 + ax @ n1 + b1
        h1 = z1.relu()
        self.rows[0][batch] = h1
        z2 = h1 @ s2 + into @ self.rows[0] @ n2 + b2
        h2 = z2.relu()
        self.rows[1][batch] = h2 @ n3
        logits = (h2 @ s3 + into @ self.rows[1] + b3).requires_grad_()
        counted = self.train[batch]
        loss = F.cross_entropy(logits[counted], self.labels[batch][counted], reduction="sum") * self.scale
        (g3,) = torch.autograd.grad(loss, logits)
        self.grads[1][batch] = g3
        t3 = out_of @ self.grads[1]
        g2 = (g3 @ s3.T + t3 @ n3.T) * (z2 > 0)
        self.grads[0][batch] = g2
        t2 = out_of @ self.grads[0]
        g1 = (g2 @ s2.T + t2 @ n2.T) * (z1 > 0)
        return [(ax.T @ g1, x.T @ g1, g1.sum(0)), (h1.T @ t2, h1.T @ g2, g2.sum(0)), (h2.T @ t3, h2.T @ g3, g3.sum(0))]


@pytest.mark.mpi(1, 2, 4)
@pytest.mark.parametrize("directed", [False, True])
def test_gradients_are_those_of_the_formula(comm, directed):
    data = random_graph(3)
    if directed:  # both arcs of each edge, cut apart
        ordinary = data.edges[:, 0] != data.edges[:, 1]
        data.edges, data.directed = np.concatenate([data.edges, data.edges[ordinary, ::-1]]), True
    graph = dist_graph(data, comm, clusters=True)
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=8, norm="none", dropout=0.0), 7, 4).double()
    dense, batches = DenseSteps(random_graph(3), 3), Batches(graph, num_micro=3, num_strata=4)
    for number in range(2):
        for step, batch in enumerate(batches.of_pass(number)):
            graph.step = 3 * number + step
            model.zero_grad()
            rank_loss(batch, model(batch, batch.feats)).backward()
            found = [(c.fc_neigh.weight, c.fc_self.weight, c.fc_self.bias) for c in model.convs]
            ids = torch.from_numpy(np.sort(np.concatenate(comm.allgather(batch.owned_ids))))
            expected = dense.step(ids, [(n.detach().T, s.detach().T, b.detach()) for n, s, b in found])
            for layer, wanted in zip(found, expected, strict=True):
                for parameter, gradient in zip(layer, wanted, strict=True):
                    summed = torch.from_numpy(comm.allreduce(parameter.grad.numpy()))
                    torch.testing.assert_close(summed.reshape(-1), gradient.t().reshape(-1), rtol=1e-10, atol=1e-13)
                    parameter.data -= 0.1 * summed


@pytest.mark.mpi(1, 2)
@pytest.mark.parametrize("model", ["sage", "gcn"])
def test_without_history_a_batch_is_the_graph_that_it_induces(comm, model):
    data = random_graph(4, num_edges=600)
    graph = dist_graph(data, comm, clusters=True)
    torch.manual_seed(0)
    network = build_model(ModelConfig(model, 8, dropout=0.0), 7, 4).double()
    for batch in Batches(graph, num_micro=2, num_strata=3, history=False).of_pass(0):
        ids = np.sort(np.concatenate(comm.allgather(batch.owned_ids)))
        inside = np.isin(data.edges, ids).all(1)
        induced = GraphData.from_arrays(
            np.searchsorted(ids, data.edges[inside]), num_nodes=len(ids), directed=False, feats=data.feats[ids],
            labels=data.labels[ids], train=[0], valid=[1], test=[2], name="induced",
        )  # fmt: skip
        assert 0 < len(induced.edges) < len(data.edges)
        alone = whole_graph(induced)
        expected = gather_rows(alone, network(alone, alone.feats).detach())
        rows = zip(*comm.allgather((batch.owned_ids, network(batch, batch.feats).detach().numpy())), strict=True)
        of_ids, logits = map(np.concatenate, rows)
        np.testing.assert_allclose(logits, expected[np.searchsorted(ids, of_ids)], rtol=1e-10, atol=1e-12)
