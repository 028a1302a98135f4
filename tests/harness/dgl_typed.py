"""Models of DGL for graphs with types, by name: (model of a whole graph, its rows by type from a model and a graph)."""

import torch
from torch import nn

from distgnn.system.other_libraries import import_dgl

dgl = import_dgl()
from dgl import function as fn  # noqa: E402
from dgl import nn as gnn  # noqa: E402

FREE = {"allow_zero_in_degree": True}
REDUCERS = ("sum", "mean", "max", "min", "stack")


def feats(graph):
    return {kind: graph.nodes[kind].data["feat"] for kind in graph.ntypes}


def flat(rows):
    return {kind: one.flatten(1) for kind, one in rows.items()}


def widths(whole):
    return {name: columns["feats"].shape[1] for name, columns in whole.columns.items()}


def by_relation(make, column=None, aggregate="sum", both=False):
    """HeteroGraphConv over layers that `make` makes of the widths at both ends; `column`: of arcs, as an argument."""

    def model(whole):
        size = widths(whole)
        return gnn.HeteroGraphConv({key[1]: make(size[key[0]], size[key[2]]) for key in whole.edges}, aggregate)

    def call(model, graph):
        given = {key[1]: (graph.edges[key].data[column],) for key in graph.canonical_etypes} if column else None
        rows = (feats(graph), feats(graph)) if both else feats(graph)
        return flat(model(graph, rows, mod_args=given))

    return model, call


def by_weight(make):
    """HeteroGraphConv over layers that take edge weights by name."""
    model, _ = by_relation(make)

    def call(model, graph):
        given = {key[1]: {"edge_weight": graph.edges[key].data["weight"]} for key in graph.canonical_etypes}
        return flat(model(graph, feats(graph), mod_kwargs=given))

    return model, call


class SharedBases(nn.Module):
    """HeteroGraphConv over GraphConv whose matrices are made of two for all relations, as DGL's example of RGCN."""

    def __init__(self, whole):
        super().__init__()
        self.names = [key[1] for key in whole.edges]
        self.bases = gnn.WeightBasis((8, 4), 2, len(self.names))
        made = {name: gnn.GraphConv(8, 4, norm="right", weight=False) for name in self.names}
        self.conv = gnn.HeteroGraphConv(made)

    def forward(self, graph):
        weights = {name: {"weight": one} for name, one in zip(self.names, self.bases(), strict=True)}
        return self.conv(graph, feats(graph), mod_kwargs=weights)


class GMM(nn.Module):
    """GMMConv over the first two columns of arcs."""

    def __init__(self, *sizes):
        super().__init__()
        self.conv = gnn.GMMConv(sizes, 4, dim=2, n_kernels=3, aggregator_type="mean", **FREE)

    def forward(self, graph, rows, feat):
        return self.conv(graph, rows, feat[:, :2])


class GINE(nn.Module):
    """GINEConv adds edge features to source features."""

    def __init__(self, source, target):
        super().__init__()
        self.edge, self.conv = nn.Linear(4, source), gnn.GINEConv(nn.Linear(source, 8), 0.1, learn_eps=True)

    def forward(self, graph, rows, feat):
        return self.conv(graph, rows, self.edge(feat))


def on_one_vertex_set(make, call):
    """A model on `dgl.to_homogeneous`, whose features are of one width."""

    def run(model, graph):
        for kind in graph.ntypes:
            graph.nodes[kind].data["h"] = graph.nodes[kind].data["feat"] * 2
        whole, nodes, edges = dgl.to_homogeneous(graph, ndata=["h"], edata=["weight"], return_count=True)
        assert nodes == [graph.num_nodes(kind) for kind in graph.ntypes]
        assert edges == [graph.num_edges(key) for key in graph.canonical_etypes]
        columns = whole.ndata[dgl.NTYPE], whole.edata[dgl.ETYPE]
        out = call(model, whole, whole.ndata["h"], *columns)
        return {"all": out + (whole.ndata[dgl.NID] % 3).to(out.dtype).unsqueeze(1)}

    return make, run


def hgt(use_norm=False, presorted=False):
    return on_one_vertex_set(
        lambda whole: gnn.HGTConv(8, 4, 2, len(whole.counts), len(whole.edges), 0.0, use_norm=use_norm),
        lambda model, graph, rows, kinds, etypes: model(graph, rows, kinds, etypes, presorted=presorted),
    )


def rgcn(*regularizer, **options):
    return on_one_vertex_set(
        lambda whole: gnn.RelGraphConv(8, 8, len(whole.edges), *regularizer, **options),
        lambda model, graph, rows, kinds, etypes: model(graph, rows, etypes, norm=graph.edata["weight"].unsqueeze(1)),
    )


class ByHand(nn.Module):
    """Functions of edges and nodes of one's own, along relations."""

    def __init__(self, whole):
        super().__init__()
        self.lin = gnn.HeteroLinear(widths(whole), 8)
        self.score = nn.ModuleDict({key[1]: nn.Linear(16, 1) for key in whole.edges})

    def forward(self, graph):
        with graph.local_scope():
            for kind, rows in self.lin(feats(graph)).items():
                graph.nodes[kind].data["h"] = rows
            passed = {}
            for key in graph.canonical_etypes:
                relation = graph[key]

                def message(edges):
                    score = self.score[edges.canonical_etype[1]](torch.cat([edges.src["h"], edges.dst["h"]], 1))
                    return {"s": score.tanh(), "h": edges.src["h"] * edges.data["weight"].unsqueeze(1)}

                if relation.num_edges() > 0:
                    relation.apply_edges(message)
                    graph.edges[key].data["a"] = gnn.functional.edge_softmax(relation, relation.edata.pop("s"))
                    passed[key] = (fn.u_mul_e("h", "a", "m"), fn.sum("m", "h"))
            graph.multi_update_all(passed, "mean", lambda nodes: {"h": nodes.data["h"].tanh()})
            graph.apply_nodes(lambda nodes: {"h": nodes.data["h"] * nodes.data["feat"].mean(1, True)}, ntype="paper")
            out = {kind: graph.nodes[kind].data["h"] for kind in graph.ntypes}
        assert "h" not in graph.nodes["paper"].data and "a" not in graph.edges["cites"].data
        return out


class Across(nn.Module):
    """multi_update_all with a reducer of each kind, within relations and across them."""

    def __init__(self, whole, reduce, cross):
        super().__init__()
        self.lin, self.reduce, self.cross = gnn.HeteroLinear(widths(whole), 8), reduce, cross

    def forward(self, graph):
        with graph.local_scope():
            graph.ndata["h"] = self.lin(feats(graph))
            functions = (fn.copy_u("h", "m"), getattr(fn, self.reduce)("m", "o"))
            graph.multi_update_all(dict.fromkeys(graph.canonical_etypes, functions), self.cross)
            return flat(graph.ndata["o"])


def across(reduce, cross):
    return lambda whole: Across(whole, reduce, cross), lambda model, graph: model(graph)


class Softmax(nn.Module):
    """One softmax over the arcs of all relations at each vertex, and what update_all adds up of it."""

    def __init__(self, whole, norm_by="dst"):
        super().__init__()
        self.lin, self.norm_by = nn.Linear(4, 2), norm_by

    def forward(self, graph):
        logits = {key: self.lin(graph.edges[key].data["feat"]) for key in graph.canonical_etypes}
        made = gnn.functional.edge_softmax(graph, logits, norm_by=self.norm_by)
        with graph.local_scope():
            graph.edata["a"] = {key: rows * 3 for key, rows in made.items()}
            graph.update_all(fn.copy_e("a", "m"), fn.sum("m", "o"))
            return dict(graph.ndata["o"]) | made


class Attention(nn.Module):
    """HGT relation by relation, as DGL's example has it."""

    def __init__(self, whole):
        super().__init__()
        size = widths(whole)
        self.k, self.q, self.v = (gnn.HeteroLinear(size, 8) for _ in range(3))
        for name, shape in (("pri", (2,)), ("att", (2, 4, 4)), ("msg", (2, 4, 4))):
            made = {key[1]: nn.Parameter(torch.ones(shape)) for key in whole.edges}
            setattr(self, name, nn.ParameterDict(made))

    def forward(self, graph):
        with graph.local_scope():
            k, q, v = (layer(feats(graph)) for layer in (self.k, self.q, self.v))
            for source, name, target in graph.canonical_etypes:
                part = graph[source, name, target]
                part.srcdata["k"] = torch.einsum("bij,ijk->bik", k[source].view(-1, 2, 4), self.att[name])
                part.srcdata[f"v_{name}"] = torch.einsum("bij,ijk->bik", v[source].view(-1, 2, 4), self.msg[name])
                part.dstdata["q"] = q[target].view(-1, 2, 4)
                part.apply_edges(fn.v_dot_u("q", "k", "t"))
                score = part.edata.pop("t").sum(-1) * self.pri[name] / 2
                part.edata["t"] = gnn.functional.edge_softmax(part, score, norm_by="dst").unsqueeze(-1)
            functions = {key: (fn.u_mul_e(f"v_{key[1]}", "t", "m"), fn.sum("m", "t")) for key in graph.canonical_etypes}
            graph.multi_update_all(functions, cross_reducer="mean")
            return flat({kind: graph.nodes[kind].data["t"] for kind in graph.ntypes})


class Tables(nn.Module):
    """Rows of tables instead of features: by id, and the whole table."""

    def __init__(self, whole):
        super().__init__()
        self.tables = gnn.HeteroEmbedding(whole.counts, 8)
        self.conv = gnn.HeteroGraphConv({key[1]: gnn.GraphConv(8, 4, norm="both") for key in whole.edges})
        self.lin = gnn.HeteroLinear(dict.fromkeys(whole.counts, 4), 8)

    def forward(self, graph):
        rows = self.tables({kind: graph.nodes(kind) for kind in graph.ntypes})
        rows = self.lin({kind: one.relu() for kind, one in self.conv(graph, rows).items()})
        return self.conv(graph, {kind: one + self.tables.weight[kind] for kind, one in rows.items()})


def of_cites(make, call):
    """A layer of one type on a relation from a type to itself."""

    def run(model, graph):
        return {"paper": call(model, graph["cites"], graph.nodes["paper"].data["feat"]).flatten(1)}

    return lambda whole: make(), run


CASES = {
    **{
        f"SAGEConv {one}": by_relation(lambda *sizes: gnn.SAGEConv(sizes, 8, "mean"), aggregate=one) for one in REDUCERS
    },
    "SAGEConv own aggregate": by_relation(
        lambda *sizes: gnn.SAGEConv(sizes, 8, "mean"), aggregate=lambda rows, kind: torch.stack(rows).sum(0) * len(kind)
    ),
    "SAGEConv pairs": by_relation(lambda *sizes: gnn.SAGEConv(sizes, 4, "mean"), both=True),
    "SAGEConv pool": by_relation(lambda *sizes: gnn.SAGEConv(sizes, 8, "pool")),
    "SAGEConv gcn": by_relation(lambda *sizes: gnn.SAGEConv(sizes, 8, "gcn")),
    "SAGEConv weighted": by_weight(lambda *sizes: gnn.SAGEConv(sizes, 8, "mean")),
    **{
        f"GraphConv {norm}": by_relation(lambda size, _, norm=norm: gnn.GraphConv(size, 8, norm=norm))
        for norm in ("both", "right", "left", "none")
    },
    "GraphConv, shared bases": (SharedBases, lambda model, graph: model(graph)),
    "GraphConv weighted": by_weight(lambda size, _: gnn.GraphConv(size, 8, norm="right")),
    "GATConv": by_relation(lambda *sizes: gnn.GATConv(sizes, 4, 2)),
    "GATConv residual": by_relation(lambda *sizes: gnn.GATConv(sizes, 4, 2, residual=True)),
    "GATv2Conv": by_relation(lambda *sizes: gnn.GATv2Conv(sizes, 4, 2)),
    "DotGatConv": by_relation(lambda *sizes: gnn.DotGatConv(sizes, 4, 2, **FREE)),
    "EdgeGATConv": by_relation(lambda *sizes: gnn.EdgeGATConv(sizes, 4, 4, 2), "feat"),
    "GINConv": by_relation(lambda *sizes: gnn.GINConv(nn.Linear(8, 8), "sum", 0.2, learn_eps=True)),
    "GINConv max": by_relation(lambda *sizes: gnn.GINConv(nn.Linear(8, 8), "max")),
    "GINEConv": by_relation(GINE, "feat"),
    "AGNNConv": by_relation(lambda *sizes: gnn.AGNNConv()),
    "CFConv": by_relation(lambda *sizes: gnn.CFConv(sizes[0], 4, 8, 8), "feat"),
    "EdgeConv": by_relation(lambda *sizes: gnn.EdgeConv(8, 8)),
    "NNConv": by_relation(lambda *sizes: gnn.NNConv(sizes, 4, nn.Linear(4, sizes[0] * 4), "mean"), "feat"),
    "GMMConv": by_relation(GMM, "feat"),
    "HGTConv": hgt(),
    "HGTConv presorted": hgt(True, presorted=True),
    "RelGraphConv": rgcn(),
    "RelGraphConv basis": rgcn("basis", 3, layer_norm=True),
    "RelGraphConv bdd": rgcn("bdd", 2, self_loop=False),
    "TypedLinear": on_one_vertex_set(
        lambda whole: gnn.TypedLinear(8, 8, len(whole.counts)),
        lambda model, graph, rows, kinds, etypes: model(rows, kinds, sorted_by_type=True),
    ),
    "HeteroLinear, own functions": (ByHand, lambda model, graph: model(graph)),
    "HeteroEmbedding": (Tables, lambda model, graph: model(graph)),
    "HGT by hand": (Attention, lambda model, graph: model(graph)),
    "edge_softmax": (Softmax, lambda model, graph: model(graph)),
    "edge_softmax by sources": (lambda whole: Softmax(whole, "src"), lambda model, graph: model(graph)),
    **{
        f"multi_update_all {reduce} {cross}": across(reduce, cross)
        for reduce, cross in (("max", "max"), ("min", "sum"), ("mean", "stack"), ("sum", "min"))
    },
    "one type: TAGConv": of_cites(lambda: gnn.TAGConv(16, 4), lambda layer, graph, x: layer(graph, x)),
    "one type: GATConv": of_cites(lambda: gnn.GATConv(16, 4, 2, **FREE), lambda layer, graph, x: layer(graph, x)),
}
ONE_WIDTH = ("GINConv", "GINEConv", "AGNNConv", "EdgeConv", "HGTConv", "RelGraphConv", "TypedLinear")
ONE_WIDTH = (*ONE_WIDTH, "SAGEConv gcn", "GraphConv, shared bases")


# Without arcs DGL fails here, or gives row 0 a gradient that it has not:
ARCS_EVERYWHERE = ("SAGEConv pool", "EdgeConv", "edge_softmax", "multi_update_all max", "multi_update_all min")


def graph_for(name, make, seed):
    """A random graph that a case can run on, of those that `make` makes of a seed."""
    whole = make(seed, same_width=name.startswith(ONE_WIDTH))
    return whole.with_arcs() if name.startswith(ARCS_EVERYWHERE) else whole
