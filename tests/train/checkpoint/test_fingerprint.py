"""A graph is recognised by what is in it, not by its cut."""

import pytest
import scipy.sparse
import torch
from cut_graphs import dist_graph, random_cut, random_graph, whole_graph

from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.train.checkpoint import files as files


@pytest.mark.mpi(2)
def test_a_graph_is_recognised_however_it_is_cut_and_stored(comm):
    from distgnn.train.checkpoint.fingerprint import fingerprint

    data = random_graph(3, weighted=True)
    data.feats[:, 2:] = 0
    expected = fingerprint(dist_graph(data, comm))
    assert fingerprint(dist_graph(data, comm, random_cut(data.edge_list(), 2, 5, split_arcs=True))) == expected
    assert fingerprint(dist_graph(data, comm, update="copies", dtype="float32")) == expected
    assert fingerprint(whole_graph(data)) == expected
    data.feats = scipy.sparse.csr_matrix(data.feats)
    assert fingerprint(dist_graph(data, comm)) == expected
    sparse = dist_graph(data, comm, sparse_feats=True)
    sparse.feats = SparseRows(data.feats[sparse.owned_ids], torch.float32)
    assert fingerprint(sparse) == expected
