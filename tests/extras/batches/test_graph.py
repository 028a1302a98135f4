"""Steps on cluster batches: the published formula, dense, on any ranks."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph
from scipy.sparse import csr_matrix
from torch.nn import functional as F

from distgnn.config import ModelConfig
from distgnn.datasets import GraphData
from distgnn.extras.batches.batches import Batches
from distgnn.nn import build_model
from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.train.metrics import rank_loss


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
        self.rows = [torch.zeros(data.num_nodes, 8, dtype=torch.float64) for _ in range(2)]
        self.grads = [torch.zeros(data.num_nodes, 8, dtype=torch.float64) for _ in range(2)]

    def step(self, batch: torch.Tensor, weights: list) -> list:
        """Gradients (of Wn, Ws, b) of each layer."""
        into, out_of, x = self.a[batch], self.a[:, batch].T, self.x[batch]
        inputs, sums, z = [], [], []
        for layer, (neigh, own, bias) in enumerate(weights):
            if layer:
                x = z[-1].relu()
                self.rows[layer - 1][batch] = x
            inputs.append(x)
            sums.append(into @ (self.rows[layer - 1] if layer else self.x))
            z.append(x @ own + sums[-1] @ neigh + bias)
        logits, counted = z[-1].requires_grad_(), self.train[batch]
        loss = F.cross_entropy(logits[counted], self.labels[batch][counted], reduction="sum") * self.scale
        (g,) = torch.autograd.grad(loss, logits)
        found = []
        for layer in (2, 1, 0):
            found.insert(0, (sums[layer].T @ g, inputs[layer].T @ g, g.sum(0)))
            if layer:
                neigh, own, _ = weights[layer]
                self.grads[layer - 1][batch] = g @ neigh.T
                g = (g @ own.T + out_of @ self.grads[layer - 1]) * (z[layer - 1] > 0)
        return found


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["undirected", "directed", "sparse, centred"])
def test_gradients_are_those_of_the_formula(comm, kind):
    data = random_graph(3)
    if kind == "directed":  # both arcs of each edge, cut apart
        ordinary = data.edges[:, 0] != data.edges[:, 1]
        data.edges, data.directed = np.concatenate([data.edges, data.edges[ordinary, ::-1]]), True
    graph = dist_graph(data, comm, clusters=True)
    graph.transport.in_pieces = kind == "directed" and comm.size > 1  # as with --offload
    if "sparse" in kind:
        mean = np.arange(8) / 3
        shift = np.ones(graph.num_owned), mean
        graph.feats = SparseRows(csr_matrix(graph.feats.numpy() + mean), torch.float64, shift=shift)
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=8, norm="none", dropout=0.0), 8, 4).double()
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
