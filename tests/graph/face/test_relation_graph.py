"""Columns and sizes of relations and types have the manners of a DGL graph."""

import pytest
import torch
from against_dgl import default_float64
from typed_parts import random_typed, typed_graph

from distgnn.system.other_libraries import import_dgl

dgl = import_dgl()


@pytest.mark.mpi(2)
@default_float64()
def test_columns_and_sizes_have_the_manners_of_a_dgl_graph(comm):
    whole = random_typed()
    graph, plain = typed_graph(whole, comm), whole.to_dgl()
    for name in ("ntypes", "etypes", "canonical_etypes", "srctypes", "dsttypes"):
        assert getattr(graph, name) == getattr(plain, name)
    assert graph.num_nodes() == plain.num_nodes() and graph.num_edges() == plain.num_edges()
    assert graph.num_nodes("venue") == 17 and graph.get_ntype_id("venue") == plain.get_ntype_id("venue")
    for key in plain.canonical_etypes:
        ours, theirs = graph[key], plain[key]
        assert graph.to_canonical_etype(key[1]) == key and graph.get_etype_id(key) == plain.get_etype_id(key)
        assert graph.num_edges(key[1]) == plain.num_edges(key) and ours.canonical_etypes == theirs.canonical_etypes
        assert (ours.ntypes, ours.srctypes, ours.dsttypes) == (sorted({key[0], key[2]}), [key[0]], [key[2]])
        for one in ("num_nodes", "num_edges", "num_src_nodes", "num_dst_nodes", "number_of_dst_nodes"):
            assert getattr(ours, one)() == getattr(theirs, one)(), (key, one)
        for one in ("in_degrees", "out_degrees"):
            assert torch.equal(getattr(graph, one)(etype=key).whole(), getattr(plain, one)(etype=key))
        assert torch.equal(graph.edges[key].data["feat"].whole(), plain.edges[key].data["feat"])
    graph.nodes["paper"].data["half"] = graph.nodes["paper"].data["feat"] / 2
    with graph.local_scope():
        graph.ndata["gone"] = {"venue": torch.arange(17), "paper": graph.nodes("paper")}
        assert torch.equal(graph.ndata["gone"]["venue"].whole(), torch.arange(17))
        assert torch.equal(graph["at"].dstdata["gone"].whole(), torch.arange(17))
    with graph["at"].local_scope():
        graph["at"].srcdata["gone"] = graph["at"].srcdata["half"]
        assert "gone" in graph["at"].nodes["paper"].data and "gone" not in graph.nodes["paper"].data
    assert "gone" not in graph.ndata and "gone" not in graph["at"].srcdata and list(graph.ndata["half"]) == ["paper"]
    found, expected = (dgl.mean_nodes(one, "feat", ntype="paper") for one in (graph, plain))
    torch.testing.assert_close(torch.from_numpy(found.numpy()), expected)
