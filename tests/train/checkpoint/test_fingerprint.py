"""A graph is recognised by what is in it, not by its cut."""

import numpy as np
import pytest
import scipy.sparse
import torch
from cut_graphs import dist_graph, random_cut, random_graph, whole_graph
from typed_graphs import typed_graph

from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.train.checkpoint import files as files


@pytest.mark.mpi(2)
def test_a_graph_is_recognised_however_it_is_cut_and_stored(comm):
    from distgnn.train.checkpoint.fingerprint import difference, fingerprint

    data = random_graph(3, weighted=True)
    data.feats[:, 2:] = 0
    expected = fingerprint(dist_graph(data, comm))
    assert fingerprint(dist_graph(data, comm, random_cut(data.edge_list(), 2, 5, split_arcs=True))) == expected
    assert fingerprint(dist_graph(data, comm, dtype="float32")) == expected
    assert fingerprint(whole_graph(data)) == expected
    data.feats = scipy.sparse.csr_matrix(data.feats)
    assert fingerprint(dist_graph(data, comm)) == expected
    sparse = dist_graph(data, comm, sparse_feats=True)
    sparse.feats = SparseRows(data.feats[sparse.owned_ids], torch.float32)
    assert fingerprint(sparse) == expected
    typed = typed_graph()
    known = fingerprint(dist_graph(typed, comm))
    assert fingerprint(whole_graph(typed)) == known
    for columns, name in (
        (typed.typed["author"], "feats"),
        (typed.relation_columns["author", "knows", "field"], "feat"),
    ):
        kept, columns[name] = columns[name], columns[name] + np.float32(1)
        assert difference(known, fingerprint(dist_graph(typed, comm))) == "its typed columns are different"
        columns[name] = kept
