"""Rows that never change are aggregated once, and only as long as they do not change."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import ops


def calls_of(graph, function) -> int:
    before = graph.transport.num_calls
    function()
    return graph.transport.num_calls - before


@pytest.fixture
def graph(comm):
    return dist_graph(random_graph(), comm)


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ("input", {}, [2, 0, 0, 0]),
        ("input", {"cache_first": False}, [2, 2, 2, 2]),
        ("a user's constant", {}, [2, 2, 0, 0]),
        ("made anew", {}, [2, 2, 2, 2]),
    ],
)
def test_rows_are_exchanged_as_long_as_nobody_knows_that_they_stay(comm, rows, options, expected):
    graph = dist_graph(random_graph(), comm, **options)
    kept = graph.feats if rows == "input" else graph.feats + 1
    result = ops.spmm(graph, kept + 0)
    calls = []
    for _ in range(4):
        given = graph.feats + 1 if rows == "made anew" else kept
        calls.append(calls_of(graph, lambda given=given: ops.spmm(graph, given)))
    assert calls == expected
    torch.testing.assert_close(ops.spmm(graph, kept), result, rtol=0, atol=0)


@pytest.mark.mpi(2)
def test_other_scales_are_other_results(graph):
    total = ops.spmm(graph, graph.feats)
    mean = ops.spmm(graph, graph.feats, target_scale=graph.degree_scale("in", -1))
    halved = ops.spmm(graph, graph.feats, target_scale=graph.degree_scale("in", -0.5))  # another factor per vertex
    assert not torch.equal(total, mean) and not torch.equal(mean, halved)


@pytest.mark.mpi(2)
def test_what_is_kept_in_a_training_step_is_exact_where_rows_are_late(comm):
    graph = dist_graph(random_graph(), comm, algorithm="cd-2")
    with torch.no_grad():
        exact = ops.spmm(graph, graph.feats + 0)
    for graph.step in range(6):
        late = ops.spmm(graph, graph.feats + graph.step)  # rows that are met for the first time
    assert not torch.allclose(late, exact + 5 * ops.spmm(graph, torch.ones_like(graph.feats)))
    torch.testing.assert_close(ops.spmm(graph, graph.feats), exact)


@pytest.mark.mpi(2)
def test_self_loops_are_another_result(graph):
    total = ops.spmm(graph, graph.feats).clone()
    twice = ops.SelfLoops(torch.full((graph.num_owned,), 2.0, dtype=graph.feats.dtype))
    with_loops = ops.spmm(graph, graph.feats, loops=twice)
    torch.testing.assert_close(with_loops, total + 2 * graph.feats)
    torch.testing.assert_close(ops.spmm(graph, graph.feats), total, rtol=0, atol=0)


@pytest.mark.mpi(2)
def test_written_features_are_aggregated_again(graph):
    first = ops.spmm(graph, graph.feats).clone()
    graph.feats.mul_(2)
    torch.testing.assert_close(ops.spmm(graph, graph.feats), 2 * first)


@pytest.mark.mpi(2)
def test_a_result_that_was_written_to_is_not_reused(graph):
    first = ops.spmm(graph, graph.feats)
    expected = first.clone()
    first.zero_()
    torch.testing.assert_close(ops.spmm(graph, graph.feats), expected)


@pytest.mark.mpi(2)
def test_a_rank_without_vertices_decides_with_the_others(comm):
    """torch returns the input itself for an empty dropout: alone, that rank would skip the exchange and hang us."""
    data = random_graph()
    from cut_graphs import random_cut

    cut = random_cut(data.edge_list(), comm.size)
    cut.owner[:] = 0
    graph = dist_graph(data, comm, cut)
    assert (graph.num_owned == 0) == (comm.rank == 1)
    calls = [calls_of(graph, lambda: ops.spmm(graph, torch.nn.functional.dropout(graph.feats, 0.5))) for _ in range(3)]
    assert calls == [2, 2, 2]


@pytest.mark.mpi(2)
def test_other_edge_weights_are_other_results(graph):
    """What is kept belongs to one state of one tensor of weights."""
    plain = ops.spmm(graph, graph.feats).clone()
    weight = torch.full((graph.num_edges(),), 2.0, dtype=graph.dtype)
    torch.testing.assert_close(ops.spmm(graph, graph.feats, weight), 2 * plain)
    assert calls_of(graph, lambda: ops.spmm(graph, graph.feats, weight)) == 0
    weight.mul_(2)
    torch.testing.assert_close(ops.spmm(graph, graph.feats, weight), 4 * plain)
    torch.testing.assert_close(ops.spmm(graph, graph.feats, torch.full_like(weight, 3)), 3 * plain)


@pytest.mark.mpi(2)
def test_weights_that_are_gone_do_not_stand_for_no_weights(graph):
    weight = torch.full((graph.num_edges(),), 2.0, dtype=graph.dtype)
    doubled = ops.spmm(graph, graph.feats, weight).clone()
    del weight
    torch.testing.assert_close(2 * ops.spmm(graph, graph.feats), doubled)
