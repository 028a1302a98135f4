"""Features and relations of arcs, and types of vertices, in the partition folder."""

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import load_part, partition_graph

from ..core.test_local_graph import local_arcs
from ..folders import make_graph


@pytest.mark.parametrize("self_loops", ["keep", "remove"])
@pytest.mark.parametrize(("directed", "direction"), [(False, "stored"), (True, "stored"), (True, "both")])
def test_arcs_carry_the_features_and_relation_of_their_row(directed, direction, self_loops, tmp_path):
    graph = make_graph(typed=True, directed=directed)
    if direction == "both":  # which would have to merge the features of reciprocal rows
        graph.edge_feats = None
    manifest = partition_graph(graph, 3, tmp_path / "parts", direction=direction, self_loops=self_loops)
    inverses = 4 if directed and direction == "both" else 0
    assert (manifest["graph"]["num_relations"], manifest["graph"]["num_node_types"]) == (4 + inverses, 2)
    rows_of = {}  # (source, target) -> rows of the input, as arcs of this direction
    for row, (u, v) in enumerate(graph.edges):
        rows_of.setdefault((u, v), []).append((row, 0))
        if (not directed or direction == "both") and u != v:
            rows_of.setdefault((v, u), []).append((row, inverses))
    found = {}
    for part in range(3):
        local = load_part(tmp_path / "parts", part)
        np.testing.assert_array_equal(local.node_types, graph.node_types[local.global_ids[: local.num_owned]])
        sources, targets = local_arcs(local)
        pairs = set(zip(local.edge_types.tolist(), targets.tolist(), strict=True))
        assert manifest["parts"][part]["relation_targets"] == len(pairs) < manifest["parts"][part]["arcs"]
        for arc, ends in enumerate(zip(sources, targets, strict=True)):
            feats = () if graph.edge_feats is None else tuple(local.edge_feats[arc])
            found.setdefault(ends, []).append((local.edge_types[arc], *feats))
    expected = {}
    for ends, rows in rows_of.items():
        if self_loops == "keep" or ends[0] != ends[1]:
            feats = graph.edge_feats
            expected[ends] = [
                (graph.edge_types[row] + more, *(() if feats is None else feats[row])) for row, more in rows
            ]
    assert {ends: sorted(rows) for ends, rows in found.items()} == {e: sorted(r) for e, r in expected.items()}


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
