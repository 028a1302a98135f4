"""Layers and models of DGL on the types and relations of P ranks equal plain DGL on the whole graph."""

import pytest
from against_dgl import default_float64
from dgl_typed import CASES, graph_for
from typed_parts import random_typed, same_steps, typed_graph

from distgnn.errors import InputError
from distgnn.system.other_libraries import import_dgl

dgl = import_dgl()


@pytest.mark.mpi(3)
@default_float64()
def test_every_layer_gives_what_plain_dgl_gives(comm):
    for number, name in enumerate(CASES):
        whole = graph_for(name, random_typed, number)
        same_steps(name, CASES[name], whole, whole.to_dgl, comm)


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
        "use the relation that leads back": lambda: dgl.reverse(graph["writes"]),
        "dgl.add_self_loop needs a whole graph": lambda: dgl.add_self_loop(graph, etype="cites"),
        "needs one type at both ends": lambda: near.plain.face.in_rows(_convolve, (near, x["venue"]), {}),
    }
    for says, run in refused.items():
        with pytest.raises((InputError, KeyError), match=says):
            run()


def _convolve(graph, rows):
    raise AssertionError("not reached")
