"""Features and relations of arcs, and types of vertices, in the partition folder."""

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import load_part, partition_graph

from ..folders import make_graph
from ..laws import local_arcs


@pytest.mark.parametrize("self_loops", ["keep", "remove"])
@pytest.mark.parametrize(("directed", "direction"), [(False, "stored"), (True, "stored"), (True, "both")])
def test_arcs_carry_the_features_and_relation_of_their_row(directed, direction, self_loops, tmp_path):
    graph = make_graph(typed=True, directed=directed)
    if direction == "both":  # which would have to merge the features of reciprocal rows
        graph.edge_feats = None
    manifest = partition_graph(graph, 3, tmp_path / "parts", direction=direction, self_loops=self_loops)
    inverses = 4 if directed and direction == "both" else 0
    assert (manifest["graph"]["num_relations"], manifest["graph"]["num_node_types"]) == (4 + inverses, 2)
    edges, found = graph.edge_list(direction, self_loops), []
    for part in range(3):
        local, sizes = load_part(tmp_path / "parts", part), manifest["parts"][part]
        np.testing.assert_array_equal(local.node_types, graph.node_types[local.global_ids[: local.num_owned]])
        pairs = set(zip(local.edge_types.tolist(), local_arcs(local)[1].tolist(), strict=True))
        assert sizes["relation_targets"] == len(pairs) < sizes["arcs"]
        backward, rows = local.arc_ids >= edges.num_edges, edges.edge_ids[local.arc_ids % edges.num_edges]
        np.testing.assert_array_equal(local.edge_types, graph.edge_types[rows] + inverses * backward)
        if graph.edge_feats is not None:
            np.testing.assert_array_equal(local.edge_feats, graph.edge_feats[rows])
        ends = graph.edges[rows]
        np.testing.assert_array_equal(local_arcs(local), np.where(backward[:, None], ends[:, ::-1], ends).T)
        found += local.arc_ids.tolist()
    assert sorted(found) == edges.arcs()[2].tolist()


def test_added_self_loops_have_features_of_ones(tmp_path):
    graph = make_graph(typed=True)
    graph.edge_types = None
    partition_graph(graph, 2, tmp_path / "parts", self_loops="add")
    local = load_part(tmp_path / "parts", 0)
    sources, targets = local_arcs(local)
    assert (local.edge_feats[sources == targets] == 1).all() and (sources == targets).any()
    assert (local.edge_feats[sources != targets] < 1).all()


def test_what_types_and_edge_features_do_not_allow_is_refused(tmp_path):
    with pytest.raises(InputError, match="a self-loop has no relation"):
        partition_graph(make_graph(typed=True), 2, tmp_path / "parts", self_loops="add")
    graph = make_graph(typed=True, directed=True)
    graph.edge_types = None
    with pytest.raises(InputError, match="reciprocal rows that carry edge features"):
        partition_graph(graph, 2, tmp_path / "parts", direction="both")
    assert not (tmp_path / "parts").exists()
