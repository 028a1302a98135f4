"""What a checkpoint knows of settings and of the graph.

A graph is recognised by what is in it, not by its cut.
"""

import functools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from cut_graphs import dist_graph, random_cut, random_graph, whole_graph
from typed_graphs import typed_graph

import distgnn as dg
from distgnn.graph.memory.spans import resident_in, spans_in
from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.partition import partition_graph
from distgnn.train.checkpoint.identity import difference, fingerprint, name_of


def scaled(factor):
    return lambda graph, logits: factor * logits.sum()


def weighted(graph, logits, factor):
    return factor * logits.sum()


def test_functions_without_a_name_are_told_apart_by_what_they_do():
    losses = [scaled(2), scaled(3), lambda graph, logits: logits.sum(), lambda graph, logits: logits.mean()]
    losses += [functools.partial(weighted, factor=factor) for factor in (2, 3)] + [weighted, None]
    assert len({name_of(loss) for loss in losses}) == len(losses)
    assert name_of(scaled(2)) == name_of(scaled(2))
    assert name_of(weighted) == "weighted"
    assert name_of(losses[4]) == "partial(weighted, factor=2)"
    moved = eval("\n\n[lambda graph, logits: logits.sum()]")[0]
    assert name_of(moved).split()[-1] == name_of(losses[2]).split()[-1]  # what it does, not where it is written
    later = lambda graph, logits: not_yet + logits  # noqa: E731
    assert len(name_of(later).split()) == 2
    not_yet = 1

    class Loss:
        def __call__(self, graph, logits): ...

    assert name_of(Loss()).endswith("Loss")


@pytest.mark.mpi(2)
def test_a_rank_without_vertices_has_a_fingerprint(comm):
    data = random_graph(2, typed=True)
    edges = data.edge_list()
    cut = replace(random_cut(edges, 1, 1), num_parts=2)
    assert np.array_equal(np.unique(cut.owner), [0])
    assert fingerprint(dist_graph(data, comm, cut)) == fingerprint(whole_graph(data))


@pytest.mark.mpi(1)
def test_a_fingerprint_needs_no_memory_by_the_arc(comm, tmp_path):
    """It is made beside a step's free rows: what it took for a whole array was the peak of a run."""
    data = random_graph(1, num_nodes=2000, num_edges=1 << 19, weighted=True)
    partition_graph(data, 1, tmp_path / "parts", method="random")
    graph = dg.load(tmp_path / "parts", comm=comm, say=None)
    tracemalloc.start()
    fingerprint(graph)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ids = graph.local.arc_ids
    assert most < ids.nbytes, most
    assert sum(resident_in(next(spans_in(ids, {})))) == 0


@pytest.mark.mpi(2)
def test_a_graph_is_recognised_however_it_is_cut_and_stored(comm):
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
    relation = typed.relation_columns["author", "knows", "field"]
    for columns, name in ((typed.typed["author"], "feats"), (relation, "feat")):
        kept, columns[name] = columns[name], columns[name] + np.float32(1)
        assert difference(known, fingerprint(dist_graph(typed, comm))) == "its typed columns are different"
        columns[name] = kept
