"""Layers and models of DGL on the types and relations of P ranks equal plain DGL on the whole graph."""

import pytest
import torch
from against_dgl import default_float64
from dgl_typed import CASES, graph_for
from typed_parts import random_steps, random_typed, same_steps, typed_graph

from distgnn.errors import InputError
from distgnn.system.other_libraries import import_dgl

dgl = import_dgl()
CITES = ("paper", "cites", "paper")
WRONG_BEFORE = (
    *((32, "RelGraphConv bdd"), (216, "one type: GCNConv"), (509, "one type: GATConv")),
    *((509, "FastRGCNConv"), (0, "SAGEConv, neighbours alone"), (288, "HGTConv skip")),
)


@pytest.mark.mpi(3)
@default_float64()
def test_every_layer_gives_what_plain_dgl_gives(comm):
    for number, name in enumerate(CASES):
        whole = graph_for(name, random_typed, number)
        same_steps(name, CASES[name], whole, whole.to_dgl, comm)


@pytest.mark.mpi(3)
@default_float64()
def test_random_graphs_give_what_plain_dgl_and_pyg_give(comm):
    """A case each; hundreds: tests/bench/typed/random_graphs.py. Behind them graphs that were wrong: of one arc, of two
    vertices, of as many vertices as relations, of a type without relations."""
    pytest.importorskip("torch_geometric")
    ran, refused = random_steps([*range(0, 500, 25), *WRONG_BEFORE], comm)
    assert ran >= 20 and refused <= 5


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


@pytest.mark.mpi(2)
@default_float64()
def test_what_a_rank_cannot_do_with_types_is_refused_in_one_line(comm):
    graph = typed_graph(random_typed(), comm)
    x, near = {kind: graph.nodes[kind].data["feat"] for kind in graph.ntypes}, graph["near"]
    copy, own = dgl.function.copy_u("feat", "m"), lambda nodes: {"o": nodes.mailbox["m"].sum(1)}
    refused = {
        "name the relation": lambda: graph.in_degrees(),
        "there is no relation 'reads'": lambda: graph.num_edges("reads"),
        "rows of two types": lambda: near.srcdata.update(h=x["author"]),
        "rows of two types do not go together": lambda: dgl.ops.copy_u_sum(near, x["author"]),
        "reduce with the built-in functions": lambda: graph.update_all(copy, own, etype="near"),
        "update_all of several relations": lambda: graph.update_all(copy, dgl.function.mean("m", "o")),
        "name the type": lambda: graph.apply_nodes(own),
        "unknown cross_reducer 'last'": lambda: graph.multi_update_all(
            dict.fromkeys(("cites", "writes"), (copy, dgl.function.sum("m", "o"))), "last"
        ),
        "give a dict of rows by type": lambda: graph.ndata.update(h=x["venue"]),
        "edges of the whole graph": lambda: graph.edges(etype="near"),
        "cannot run distributed": lambda: graph.adj(etype="near"),
        "dgl.metapath_reachable_graph needs a whole graph": lambda: dgl.metapath_reachable_graph(graph, ["at"]),
        "dgl.add_self_loop needs a whole graph": lambda: dgl.add_self_loop(graph, etype="cites"),
        "needs one type at both ends": lambda: near.plain.face.in_rows(_convolve, (near, x["venue"]), {}),
    }
    for says, run in refused.items():
        with pytest.raises((InputError, KeyError), match=says):
            run()


def _convolve(graph, rows):
    raise AssertionError("not reached")
