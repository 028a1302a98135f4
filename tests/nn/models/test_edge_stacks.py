"""Stacks of graphs whose arcs have features or types equal the same of DGL's layers."""

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, dist_graph, gather_rows, random_graph
from plain_models import label, same_as_dgls, sizes_of

from distgnn.config import EDGE_MODELS, ModelConfig
from distgnn.nn import model_for
from distgnn.train.export.dgl import DGLModel

VARIANTS = [ModelConfig(name) for name in (*EDGE_MODELS, "rgcn")]
VARIANTS += [ModelConfig("rgcn", num_bases=2, norm="none", remat=True), ModelConfig("edgegat", norm="none", remat=True)]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("config", VARIANTS, ids=label)
def test_a_model_equals_the_same_of_dgls_layers(comm, config):
    same_as_dgls(comm, config, directed=VARIANTS.index(config) % 2 == 1)


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
