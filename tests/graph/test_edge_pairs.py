"""Negatives depend on seed, step and the pair, not on ranks; and they are Philox's numbers."""

import numpy as np
import pytest
from cut_graphs import dist_graph, random_graph

import distgnn as dg
from distgnn.errors import InputError
from distgnn.graph.edge_pairs import NEGATIVE_TAG
from distgnn.kernels.simd.random_vectors import derive_key, philox_python


def everyone(comm, pairs, negatives, per_positive) -> np.ndarray:
    """Negatives of all ranks in the order of the split, [M, per_positive, 2]."""
    pieces = comm.allgather((pairs.ids, negatives.reshape(-1, per_positive, 2)))
    whole = np.empty((pairs.num_pairs, per_positive, 2), dtype=np.int64)
    for ids, rows in pieces:
        whole[ids] = rows
    return whole


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["uniform", "source"])
def test_negatives_are_a_function_of_seed_step_and_pair(comm, kind):
    data = random_graph(1).split_links(0.1, 0.1)
    graph = dist_graph(data, comm, seed=5)
    graph.step = 3
    pairs = graph.edge_pairs("train")
    assert np.array_equal(pairs.pairs, data.edges[pairs.ids])
    found = everyone(comm, pairs, dg.negative_edges(graph, pairs, 2, kind), 2)
    key = derive_key(5, 3, 0, NEGATIVE_TAG)
    for row in range(0, len(found), 17):
        for draw in range(2):
            words = philox_python((draw, row, 0, int(key[2])), (int(key[0]), int(key[1])))
            numbers = [words[0] | words[1] << 32, words[2] | words[3] << 32]
            source, target = (number % data.num_nodes for number in numbers)
            expected = [data.edges[row, 0] if kind == "source" else source, target]
            assert found[row, draw].tolist() == expected
    again = everyone(comm, pairs, dg.negative_edges(graph, pairs, 2, kind), 2)
    graph.step = 3
    same = everyone(comm, pairs, dg.negative_edges(graph, pairs, 2, kind), 2)
    assert np.array_equal(found, same) and not np.array_equal(found, again)


@pytest.mark.mpi(1)
def test_they_are_uniform_and_what_is_refused(comm):
    data = random_graph(1, num_nodes=20, num_edges=4000)
    data.train_edges = data.edges
    graph = dist_graph(data, comm)
    pairs = graph.edge_pairs("train")
    negatives = dg.negative_edges(graph, pairs, 3)
    counts = np.bincount(negatives.reshape(-1), minlength=20)
    assert abs(counts - counts.mean()).max() < 5 * np.sqrt(counts.mean())  # 5 standard deviations
    with pytest.raises(InputError, match="unknown negatives 'hard'"):
        dg.negative_edges(graph, pairs, 1, "hard")
    with pytest.raises(InputError, match="num_negatives is 0"):
        dg.negative_edges(graph, pairs, 0)
    with pytest.raises(InputError, match="the graph has no test edges: hold some out"):
        graph.edge_pairs("test")
    with pytest.raises(InputError, match="unknown split 'tests'"):
        graph.edge_pairs("tests")
