"""Features centred and scaled at load: plain torch's numbers, sparse as dense, the same on any number of ranks."""

from dataclasses import replace

import numpy as np
import pytest
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph
from sparse_feats import WIDTH, plain, sparse_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.nn import build_model
from distgnn.ops import SparseRows
from distgnn.train import Trainer

CHAINS = ("center", "standardize", "row-l2", "row-l2,center", "row-l2+standardize", "standardize,row-l2")


@pytest.mark.mpi(3)
@pytest.mark.parametrize("chain", CHAINS)
def test_rows_are_plain_torchs_sparse_or_dense(comm, chain):
    data, feats = sparse_graph()
    kept, dense = (dist_graph(one, comm, feat_norm=chain) for one in (data, GraphData(**vars(data) | {"feats": feats})))
    assert isinstance(kept.feats, SparseRows) and not isinstance(dense.feats, SparseRows)
    for graph in (kept, dense):
        found = graph.feats.dense() if isinstance(graph.feats, SparseRows) else graph.feats
        np.testing.assert_allclose(gather_rows(graph, found), plain(feats, chain), atol=1e-13)


@pytest.mark.mpi(2)
def test_inductive_statistics_are_of_training_vertices(comm):
    data, feats = sparse_graph()
    chosen = data.split_masks()["train"]
    graph = dist_graph(data, comm, feat_norm="standardize", inductive=True)
    rows = gather_rows(graph, graph.feats.dense())
    np.testing.assert_allclose(rows, plain(feats, "standardize", np.asarray(chosen)), atol=1e-12)
    trained = Trainer(build_model(ModelConfig(hidden_feats=8), WIDTH, 4), graph, TrainConfig(epochs=1, inductive=True))
    subgraph = trained.graph
    assert subgraph.feat_norm is graph.feat_norm
    with pytest.raises(InputError, match="load the graph with inductive=True"):
        of_all = dist_graph(data, comm, feat_norm="center")
        Trainer(build_model(ModelConfig(hidden_feats=8), WIDTH, 4), of_all, TrainConfig(inductive=True))


def test_a_graph_without_features_has_nothing_to_centre():
    data = replace(random_graph(), feats=None)
    with pytest.raises(InputError, match="feat_norm center needs features"):
        whole_graph(data, feat_norm="center")
