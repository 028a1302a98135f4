"""A transformation per relation, made per group of arcs, equals one sum for each relation, with gradients."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn import ops
from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError


@pytest.mark.mpi(2)
@pytest.mark.parametrize("weight", [None, "mean", "by arc"])
def test_groups_give_the_sum_over_relations(comm, weight):
    graph = dist_graph(random_graph(3), comm)
    kinds, generator = torch.from_numpy(graph.local.arc_ids) % 3, torch.Generator().manual_seed(0)
    weights = [torch.randn(8, 4, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(4)]
    factors = [(kinds == kind).double() * (kinds + 1 if weight == "by arc" else 1) for kind in range(3)]
    if weight == "mean":
        counts = [ops.from_arcs(graph, one[:, None]).clamp(min=1) for one in factors]
    found = []
    for grouped in (True, False):
        rows = (graph.feats + 0).requires_grad_()
        if grouped:
            given = sum(factors) if weight == "by arc" else weight
            out = ops.RelationArcs(graph, kinds, 3, given).convolve(rows, weights[:3], weights[3])
        else:
            sums = [ops.spmm(graph, rows, one) for one in factors]
            sums = [one / count for one, count in zip(sums, counts, strict=True)] if weight == "mean" else sums
            out = rows @ weights[3] + sum(one @ matrix for one, matrix in zip(sums, weights, strict=False))
        of_rows, *shares = torch.autograd.grad(out.sin().sum(), [rows, *weights])
        found.append([out, of_rows, *(torch.from_numpy(sum_over_ranks(comm, one.numpy())) for one in shares)])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-11)


@pytest.mark.mpi(2)
def test_relations_and_widths_that_do_not_fit_are_refused(comm):
    graph = dist_graph(random_graph(3), comm)
    kinds, matrix = torch.zeros(graph.num_edges(), dtype=torch.int64), torch.ones(8, 4, dtype=torch.float64)
    with pytest.raises(InputError, match="relations of arcs run from 0 to 1, and there are others"):
        ops.RelationArcs(graph, kinds + 2 * comm.rank, 2)  # on one rank only
    arcs = ops.RelationArcs(graph, kinds, 2)
    with pytest.raises(ValueError, match="rows are 8 wide, and the matrix of a relation takes 4"):
        arcs.convolve(graph.feats, [matrix, matrix.T])
    with pytest.raises(ValueError, match="differ in width"):
        arcs.convolve(graph.feats, [matrix, matrix[:, :3]])
