"""The loss of a graph in parts is torch's mean over the labelled training rows of the whole graph."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph
from torch.nn import functional as F

from distgnn.train.loss import rank_loss


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("multilabel", [False, True])
def test_shares_of_ranks_add_up_to_torchs_mean(comm, multilabel):
    data = random_graph(1, multilabel=multilabel)
    graph = dist_graph(data, comm)
    logits = torch.from_numpy(np.random.default_rng(0).standard_normal((data.num_nodes, 4)))
    labels, rows = torch.from_numpy(np.asarray(data.labels)), torch.from_numpy(np.asarray(data.train))
    found = comm.allreduce(float(rank_loss(graph, logits[graph.owned_ids])))
    if multilabel:
        expected = F.binary_cross_entropy_with_logits(logits[rows], labels[rows].to(logits.dtype))
    else:
        expected = F.cross_entropy(logits[rows], labels[rows], ignore_index=-1)
    assert found == pytest.approx(float(expected), rel=1e-12)
