"""What a rank gives is the plain forward pass in evaluation mode, whatever the layers, on any number of ranks."""

from functools import partial

import numpy as np
import pytest
import torch
from cut_graphs import random_graph

from distgnn.interop.pyg import arc_set
from distgnn.ops.edges import arc_blocks, softmax
from distgnn.partition import partition_graph
from distgnn.predicting import on_rank
from distgnn.predicting.on_rank import Job, predict_part
from distgnn.system.calls.packing import pack
from distgnn.system.other_libraries import import_dgl

WIDTH, EDGE_WIDTH, RELATIONS = 8, 5, 3
torch_geometric = pytest.importorskip("torch_geometric")
pyg = torch_geometric.nn
IN_FLOAT32 = ("GraphSAGE", "GAT", "edge features", "DGL's GraphConv")  # all are in float64
WHOLE_IN = ("relations",)  # a number of each arc and relation


class Wrapped(torch.nn.Module):
    """Layers of PyG in a user's class. `takes`: further arguments of its layers."""

    def __init__(self, *layers, gives=lambda rows: rows[-1], column=None):
        super().__init__()
        self.layers, self.gives, self.column = torch.nn.ModuleList(layers), gives, column

    def forward(self, data):
        rows, found = data.x, []
        for layer in self.layers:
            if isinstance(layer, torch.nn.BatchNorm1d):
                rows = layer(rows)
            else:
                rows = layer(rows, data.edge_index, *([data[self.column]] if self.column else []))
            found.append(rows)
            rows = torch.nn.functional.dropout(rows.relu(), 0.5, self.training)
        return self.gives(found)


class Own(pyg.MessagePassing):
    def __init__(self):
        super().__init__(aggr="mean")
        self.of_rows, self.of_arcs = torch.nn.Linear(WIDTH, 4), torch.nn.Linear(EDGE_WIDTH, 4)

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=self.of_rows(x), edge_attr=edge_attr)

    def message(self, x_j, edge_attr):
        return (x_j + self.of_arcs(edge_attr)).relu()


def attr(layer):
    """A model whose layer takes edge features."""
    return lambda: Wrapped(layer(), column="edge_attr")


ALONE = {"allow_zero_in_degree": True}
DGL = {  # as DGL's examples have them
    "GraphConv": lambda dgl: [dgl.GraphConv(WIDTH, 8, activation=torch.relu, **ALONE), dgl.GraphConv(8, 4, **ALONE)],
    "SAGEConv": lambda dgl: [dgl.SAGEConv(WIDTH, 8, "mean"), dgl.SAGEConv(8, 4, "pool")],
    "GATConv": lambda dgl: [dgl.GATConv(WIDTH, 4, 2, feat_drop=0.5, attn_drop=0.5, residual=True, **ALONE)],
    "GINConv": lambda dgl: [dgl.GINConv(torch.nn.Linear(WIDTH, 4), "max", learn_eps=True)],
}


class OfDgl(torch.nn.Module):
    """Layers of DGL, and a batch norm."""

    def __init__(self, name):
        super().__init__()
        self.layers = torch.nn.ModuleList(DGL[name](import_dgl().nn))
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, graph, feats):
        for layer in self.layers:
            feats = layer(graph, feats)
            feats = feats.flatten(1) if feats.dim() > 2 and layer is not self.layers[-1] else feats
        return self.norm(feats.mean(1) if feats.dim() > 2 else feats)


MLP = torch.nn.Sequential
SMALL = {"aggregators": ["mean", "max", "std"], "scalers": ["identity", "amplification"], "deg": torch.ones(9)}
MODELS = {
    "GraphSAGE": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, dropout=0.5),
    "GCN, batch norm": lambda: pyg.models.GCN(WIDTH, 8, 2, 4, norm="batch"),
    "GAT": lambda: pyg.models.GAT(WIDTH, 8, 2, 4, heads=2),
    "PNA": lambda: pyg.models.PNA(WIDTH, 8, 2, 4, **SMALL),
    "jumping knowledge": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, jk="cat"),
    "LINKX": lambda: pyg.models.LINKX(60, WIDTH, 8, 4, 2),
    "LightGCN": lambda: Light(60, 8, 2),
    "DeepGCN": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), deep_layer(), deep_layer()),
    "batch norm": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), torch.nn.BatchNorm1d(8), pyg.SAGEConv(8, 4)),
    "APPNP": lambda: Wrapped(pyg.GCNConv(WIDTH, 4), pyg.APPNP(3, 0.1)),
    "GCNII": lambda: Deep(),
    "Chebyshev": lambda: Wrapped(pyg.ChebConv(WIDTH, 4, 3)),
    "cached": lambda: Wrapped(pyg.SGConv(WIDTH, 4, 2, cached=True)),  # of a plain graph, which has another order
    "reversible": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8), pyg.GroupAddRev(pyg.SAGEConv(4, 4), num_groups=2)),
    "SAGE, max": lambda: Wrapped(pyg.SAGEConv(WIDTH, 8, "max"), pyg.SAGEConv(8, 4, "max", project=True)),
    "edge features": attr(lambda: pyg.GATConv(WIDTH, 4, edge_dim=EDGE_WIDTH)),
    "GATv2, edge features": attr(lambda: pyg.GATv2Conv(WIDTH, 4, heads=2, edge_dim=EDGE_WIDTH)),
    "three heads, edge features": attr(lambda: pyg.GATConv(WIDTH, 4, heads=3, edge_dim=EDGE_WIDTH)),
    "GENConv": attr(lambda: pyg.GENConv(WIDTH, 4, learn_t=True, edge_dim=EDGE_WIDTH)),
    "transformer, edge features": attr(lambda: pyg.TransformerConv(WIDTH, 4, heads=2, edge_dim=EDGE_WIDTH)),
    "NNConv": attr(lambda: pyg.NNConv(WIDTH, 4, torch.nn.Linear(EDGE_WIDTH, 4 * WIDTH), aggr="mean")),
    "PNA, edge features": attr(lambda: pyg.PNAConv(WIDTH, 4, **SMALL, edge_dim=EDGE_WIDTH, towers=1)),
    "crystals": attr(lambda: pyg.CGConv(WIDTH, EDGE_WIDTH, "max")),
    "own messages": attr(lambda: Own()),
    "own softmax": attr(lambda: OwnSoftmax()),
    "relations": lambda: Wrapped(pyg.RGCNConv(WIDTH, 4, RELATIONS), column="edge_type"),
    "relations, films": lambda: Wrapped(pyg.FiLMConv(WIDTH, 4, RELATIONS), column="edge_type"),
    "a tuple": lambda: Wrapped(pyg.GCNConv(WIDTH, 8), pyg.GCNConv(8, 4), gives=tuple),
    "a dict": lambda: Wrapped(pyg.GCNConv(WIDTH, 8), gives=lambda rows: {"hidden": rows[0], "mean": rows[0].mean(0)}),
    **{f"DGL's {name}": partial(OfDgl, name) for name in DGL},
    "without a graph": lambda: torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)),
}


class Light(pyg.models.LightGCN):
    def forward(self, x, edge_index):
        return self.get_embedding(edge_index)


def deep_layer():
    return pyg.DeepGCNLayer(pyg.SAGEConv(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), dropout=0.1)


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, 8)
        self.layers = torch.nn.ModuleList(pyg.GCN2Conv(8, 0.1, 0.5, layer) for layer in (1, 2))

    def forward(self, x, edge_index):
        rows = first = self.first(x)
        for layer in self.layers:
            rows = layer(rows, first, edge_index).relu_()
        return rows


class OwnSoftmax(pyg.MessagePassing):
    """Writes into its messages, and weighs them over the arcs of each target."""

    def __init__(self):
        super().__init__(aggr="add")
        self.score, self.rows = torch.nn.Linear(2 * WIDTH + EDGE_WIDTH, 1), torch.nn.Linear(WIDTH + EDGE_WIDTH, 4)

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=x, edge_attr=edge_attr, size=None)

    def message(self, x_i, x_j, edge_attr, index, ptr, size_i):
        both = torch.cat([x_i, x_j, edge_attr], dim=-1)
        score = self.score(both)
        score[both[:, 0] > 0.5] = 0.25
        rows = self.rows(torch.cat([x_j - x_i, edge_attr], -1)).view(-1, 2, 2).flatten(1)
        rows += 1
        rows *= edge_attr[:, :1]
        return torch_geometric.utils.softmax(score, index, ptr, size_i) * rows


def named(made):
    if isinstance(made, torch.Tensor):
        return {"output": made}
    return made if isinstance(made, dict) else {str(place): one for place, one in enumerate(made)}


def models_and_rows(source, dtype):
    """(name, model in training mode, what the plain library gives by name)."""
    data, graph = source.to_pyg(), source.to_dgl()
    data.x, data.edge_attr = data.x.to(dtype), data.edge_attr.to(dtype)
    for name, make in MODELS.items():
        if dtype == torch.float32 and name not in IN_FLOAT32:
            continue
        torch.manual_seed(0)
        model = make().to(dtype)
        if isinstance(model, OfDgl):
            graph.ndata["feat"] = data.x
        arguments = (graph, data.x) if isinstance(model, OfDgl) else None
        arguments = arguments or {"without a graph": (data.x,)}.get(
            name, (data,) if isinstance(model, Wrapped) else None
        )
        arguments = arguments or (data.x, data.edge_index)
        model.train()
        model(*arguments)  # running statistics
        model.eval()
        with torch.no_grad():
            yield name, model.train(), named(model.eval()(*arguments))


@pytest.mark.mpi(3)
def test_the_plain_forward_pass(comm, shared_tmp_path, monkeypatch):
    """Rows of arcs whole, and in blocks; these are never whole but for a softmax's numbers."""
    source, widest = random_graph(4, directed=True, typed=True), []
    if comm.rank == 0:
        partition_graph(source, comm.size, shared_tmp_path / "parts", say=lambda line: None)
    comm.Barrier()
    whole = arc_blocks.whole_rows

    def watched(rows):
        widest.append(rows.shape[1:].numel() if isinstance(rows, arc_blocks.ArcBlocks) else 0)
        return whole(rows)

    for place in (arc_blocks, arc_set, softmax):
        monkeypatch.setattr(place, "whole_rows", watched)
    monkeypatch.setattr(arc_blocks, "BLOCK_ARCS", 7)
    monkeypatch.setattr(on_rank, "COLUMNS", 4)
    for least, dtype, limit in ((0, torch.float64, 1e-9), (1 << 16, torch.float32, 1e-5)):
        monkeypatch.setattr(arc_blocks, "LEAST_ARCS", least)
        for name, model, wanted in models_and_rows(source, dtype):
            job = Job(str(shared_tmp_path / "parts"), pack(model, "model"), (), str(shared_tmp_path), False)
            widest.clear()
            made = predict_part(job)
            assert name in WHOLE_IN or max(widest, default=0) <= 2, name
            comm.Barrier()
            assert list(made) == list(wanted)
            for place, (key, one) in enumerate(made.items()):
                found = np.load(shared_tmp_path / f"{place}.npy") if one is None else one.numpy()
                assert str(found.dtype) == str(dtype).removeprefix("torch.")
                np.testing.assert_allclose(found, wanted[key].numpy(), rtol=limit, atol=limit, err_msg=name)
            comm.Barrier()
