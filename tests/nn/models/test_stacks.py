"""Stacks of sums, means and attention equal the same of DGL's layers."""

import numpy as np
import pytest
from cut_graphs import dist_graph
from plain_models import TYPED, compare, label, same_as_dgls

from distgnn.config import ModelConfig

VARIANTS = [ModelConfig(name, weighted=True) for name in ("sage", "gcn", "gin", "gat")] + [ModelConfig("gatv2")]
VARIANTS += [ModelConfig("sage", norm="graph", head="max"), ModelConfig("gin", stem="linear", norm="none")]
VARIANTS += [ModelConfig("gat", norm="batch", head="cat", block="residual")]
VARIANTS += [ModelConfig("gcn", norm="pair", block="residual", residual="identity")]
VARIANTS += [ModelConfig(name, block="residual", head="linear") for name in ("sage", "gcn", "gin", "gatv2")]
VARIANTS += [ModelConfig(name, block="preact") for name in ("sage", "gcn", "gat", "gatv2")]


@pytest.mark.mpi(3)
@pytest.mark.parametrize("config", VARIANTS, ids=label)
def test_a_model_equals_the_same_of_dgls_layers(comm, config):
    same_as_dgls(comm, config, directed=VARIANTS.index(config) % 2 == 1)


@pytest.mark.slow
@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", ["sage", "gat", "rgcn"])  # a mean, attention, and arcs by type
def test_on_a_larger_graph(comm, graph_named, name):
    data, random = graph_named("hubs"), np.random.default_rng(0)
    if name in TYPED:
        data.edge_feats = random.standard_normal((data.num_edges, 8)).astype(np.float32)
        data.edge_types = random.integers(0, 4, data.num_edges)
    compare(data, dist_graph(data, comm), ModelConfig(name, num_layers=2), rtol=1e-8)
