"""Plans made of others: rows reach all copies, some travel alone, those that a rank asks for arrive in order."""

import numpy as np
import pytest
from cut_graphs import dist_graph, random_graph

from distgnn.comm import Exchange
from distgnn.comm.plans import VertexOwners, plan_of_some, plan_to_all_copies, request_plan
from distgnn.errors import InputError


def brought(plan, graph, ids) -> list[float]:
    """The ids of owned rows, as a broadcast of this plan brings them."""
    exchange = Exchange(plan, graph.transport)
    exchange.start_broadcast(ids[:, None].astype(np.float64))
    found = exchange.finish_broadcast()[:, 0].tolist()
    exchange.drain()
    return found


@pytest.mark.mpi(3)
def test_rows_reach_all_copies_or_those_of_some_vertices_only(comm):
    graph = dist_graph(random_graph(3), comm)
    local, ids = graph.local, graph.local.global_ids
    every = plan_to_all_copies(local.plan, local.halo_counts)
    assert brought(every, graph, graph.owned_ids) == ids[graph.num_owned :].tolist()
    some = ids % 3 == 0
    sources = some[local.source_halo_rows]
    few = plan_of_some(local.plan, some[: graph.num_owned], sources, some[local.target_halo_rows])
    owned = graph.owned_ids[some[: graph.num_owned]]
    assert brought(few, graph, owned) == ids[local.source_halo_rows][sources].tolist()


@pytest.mark.mpi(1, 3)
def test_rows_that_a_rank_asks_for_arrive_in_the_order_of_owners(comm):
    graph = dist_graph(random_graph(3), comm)
    owners = VertexOwners(comm, graph.owned_ids)
    ids = np.setdiff1d(np.arange(graph.num_global_nodes), graph.owned_ids)[comm.rank :: 2]
    ids = ids[np.argsort(owners.rank_of(ids), kind="stable")]
    plan = request_plan(graph.transport, owners, ids, graph.num_owned)
    assert brought(plan, graph, graph.owned_ids) == ids.tolist()
    assert (graph.owned_ids[owners.rows_of(graph.owned_ids)] == graph.owned_ids).all()
    for wrong in (-1, graph.num_global_nodes):
        with pytest.raises(InputError, match=f"{wrong} is no vertex of the graph"):
            owners.check(np.array([0, wrong]))
