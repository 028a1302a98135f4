"""What a schedule makes of the exchanges of training steps: which are exact, which wait, and which have a site."""

import pytest
from cut_graphs import dist_graph, random_graph

SCHEDULES = {  # options -> whether exchanges are exact, aggregations use this step's rows to the bit, and wait for them
    "exact": ({}, (True, True, True)),
    "narrow": ({"wire": "bfloat16"}, (False, False, True)),
    "narrow gradients": ({"wire_backward": "bfloat16"}, (False, False, True)),
    "late": ({"algorithm": "cd-2"}, (False, False, False)),
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_says_what_its_steps_do(comm, name):
    options, expected = SCHEDULES[name]
    graph = dist_graph(random_graph(3), comm, dtype="float32", **options)
    assert (graph.exchanges_exactly, graph.aggregates_exactly, graph.waits_for_rows) == expected
    with graph.exchanges.all_exact():
        assert graph.next_site() is None
    sites = [graph.next_site() for _ in range(2)]
    graph.step = 1  # counts anew
    sites.append(graph.next_site())
    assert [site and (site.number, site.epoch) for site in sites] == (
        [None] * 3 if name == "exact" else [(0, 0), (1, 0), (0, 1)]
    )
    assert bool(graph.exchanges.state_dict()) == (name != "exact")
