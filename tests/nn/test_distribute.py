"""Unmodified modules of `dgl.nn` on P ranks equal the same modules on the whole graph: output and every gradient."""

import warnings
import zlib

import pytest
import torch
from against_dgl import Inputs, num_arc_ids, run_ranks, run_whole, same
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, random_graph, whole_graph, without_part_1
from dgl_layers import cases

from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.nn import distribute
from distgnn.system.other_libraries import import_dgl

CASES = cases()


def make(name: str):
    torch.manual_seed(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CASES[name][0]().double()


WITH_AN_EMPTY_PART = ("sage pool", "gin max", "gat weighted", "rgcn", "rgcn bdd", "gine", "appnp weighted")


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CASES)
def test_module_runs_unchanged(comm, name):
    """Of some, a rank without vertices and arcs takes part."""
    data = random_graph(12, directed=[UNDIRECTED, DIRECTED][zlib.crc32(name.encode()) % 2])
    edges, (_, call), model = data.edge_list(), CASES[name], make(name)
    inputs = Inputs.random(data.num_nodes, num_arc_ids(edges))
    expected = run_whole(data, model, inputs, call)
    cut = without_part_1(edges, comm.size) if name in WITH_AN_EMPTY_PART else None
    graph = dist_graph(data, comm, cut, debug=True)
    assert cut is None or comm.rank != 1 or graph.num_nodes() == graph.num_edges() == 0
    same(run_ranks(graph, model, inputs, call), expected)


@pytest.mark.mpi(2)
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda graph: graph.pull([0], None, None), "graph.pull cannot run distributed: use update_all or apply_edges"),
        (lambda graph: graph.multi_update_all({}, "sum"), "multi_update_all .* use RelGraphConv with edata"),
        (lambda graph: graph.adj(), "graph.adj cannot run distributed: a rank has its own arcs only"),
        (lambda graph: graph.edges(), "not on one rank: .* prepare the graph before it is cut"),
        (
            lambda graph: import_dgl().nn.SAGEConv(8, 4, "lstm").double()(graph, graph.feats),
            "_lstm_reducer.* distgnn.nn",
        ),
        (lambda graph: import_dgl().nn.SumPooling()(graph, graph.feats), "a readout .* distgnn.ops.all_sum"),
    ],
    ids=["pull", "multi_update_all", "adj", "edges", "lstm", "readout"],
)
def test_what_no_rank_can_do_alone_names_the_alternative(comm, use, message):
    graph = dist_graph(random_graph(2), comm)
    with pytest.raises(ValueError, match=message):
        use(graph)
    assert not hasattr(graph, "adj") and not hasattr(graph.local_var(), "pull")


def test_sequential_of_dgl_is_refused():
    import dgl.nn.pytorch as dgn

    model = torch.nn.ModuleList([dgn.Sequential(dgn.GraphConv(8, 3))])
    with pytest.raises(InputError, match=r"dgl\.nn\.Sequential takes a DGLGraph only"):
        distribute(model, whole_graph(random_graph(2)))


@pytest.mark.mpi(2)
def test_what_cannot_run_is_refused_with_the_alternative(comm):
    dgl = import_dgl()
    graph = dist_graph(random_graph(), comm)
    graph.ndata["h"] = graph.feats
    copied = dgl.function.copy_u("h", "m")
    with pytest.raises(ValueError, match=r"cannot run distributed, .* reduce with the built-in functions"):
        graph.update_all(copied, lambda nodes: {"o": nodes.mailbox["m"].sum(1)})
    with pytest.raises(ValueError, match="give both one name"):
        graph.update_all(copied, dgl.function.sum("other", "o"))
    with pytest.raises(ValueError, match="must treat each edge by itself"):
        graph.update_all(lambda edges: {"m": edges.src["h"].mean(0)}, dgl.function.sum("m", "o"))
    with pytest.raises(ValueError, match="no 'edges' on several ranks"):
        graph.apply_edges(lambda edges: {"m": edges.edges()})
    with pytest.raises(ValueError, match="leave edges out"):
        graph.apply_edges(dgl.function.copy_u("h", "m"), edges=[0])


class Half(torch.nn.Dropout):
    def forward(self, rows):
        return super().forward(rows) / 2


class Shifted(torch.nn.BatchNorm1d):
    def forward(self, rows):
        return super().forward(rows) + 1


@pytest.mark.mpi(2)
@pytest.mark.parametrize("kind", [lambda: Half(0.5), lambda: Shifted(8)], ids=["dropout", "batch norm"])
@pytest.mark.parametrize("how", ["class", "hook"])
def test_modules_of_ones_own_and_with_hooks_stay(comm, kind, how):
    """Rows of all ranks are right in them; beside plain tensors they would see one rank's."""
    data, seen = random_graph(2), []
    module = kind()
    if how == "hook":
        module = torch.nn.Dropout(0.5) if isinstance(module, Half) else torch.nn.BatchNorm1d(8)
        module.register_forward_hook(lambda module, given, out: seen.append(out))
    model = torch.nn.Sequential(module.double())
    graph = with_rows(dist_graph(data, comm))
    torch.manual_seed(3)
    found = distribute(model, graph)(graph.x).whole()
    torch.manual_seed(3)
    torch.testing.assert_close(found, module(with_rows(whole_graph(data)).x).whole(), rtol=1e-9, atol=1e-9)
    assert model[0] is module and len(seen) == 2 * (how == "hook")
    with pytest.raises(ValueError, match=r"0, a .*, has hooks or a .* see one rank's rows"):
        distribute(model, dist_graph(data, comm))
