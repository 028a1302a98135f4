"""What a change reaches is computed again, equal to a whole pass to the bit; what has no reach is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cut_graphs import random_graph

import distgnn as dg
from distgnn.errors import InputError
from distgnn.predicting import changed

pyg = pytest.importorskip("torch_geometric.nn")
WIDTH, EDGE_WIDTH, CHANGED = 8, 5, [5, 100, 20, 30, 41, 42]


class Attr(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, edge_attr):
        return torch.nn.functional.elu(self.layer(x, edge_index, edge_attr))


class Centred(torch.nn.Module):
    def forward(self, x):
        return x - x.mean(0)


MODELS = {
    "GCN": lambda: pyg.models.GCN(WIDTH, 8, 2, 4, norm="batch"),
    "GAT": lambda: pyg.models.GAT(WIDTH, 8, 2, 4, heads=2),
    "GIN": lambda: pyg.models.GIN(WIDTH, 8, 2, 4),
    "layers": lambda: pyg.models.GraphSAGE(WIDTH, 8, 3, 4, jk="cat"),
    "gated": lambda: Attr(pyg.ResGatedGraphConv(WIDTH, 4, edge_dim=EDGE_WIDTH)),
    "attention": lambda: Attr(pyg.GATConv(WIDTH, 4, edge_dim=EDGE_WIDTH)),
    "products": lambda: Attr(pyg.NNConv(WIDTH, 4, torch.nn.Linear(EDGE_WIDTH, 4 * WIDTH), aggr="max")),
    "alone": lambda: torch.nn.Sequential(torch.nn.Linear(WIDTH, 8), torch.nn.SiLU(), torch.nn.Linear(8, 4)),
}
HOPS = {"GAT": 2, "GIN": 2, "attention": 1, "products": 1}  # of the others they are measured


def graphs(directed):
    """A graph; and with other features, new edges, and a new vertex."""
    old = random_graph(4, num_nodes=2000, num_edges=2400, directed=directed, typed=True)
    edges = old.edges.copy()
    edges[:480, 0] = np.arange(480)  # no hub, which would reach most
    old = replace(old, edges=edges, labels=None, train=None, valid=None, test=None)
    size = old.num_nodes
    feats = np.concatenate([old.feats, np.ones((1, WIDTH), np.float32)])
    feats[[5, 100]] += 1
    edges = np.concatenate([old.edges, [[20, size], [size, 30], [41, 42]]])
    more = {name: np.concatenate([getattr(old, name), getattr(old, name)[:3]]) for name in ("edge_feats", "edge_types")}
    types = np.concatenate([old.node_types, old.node_types[:1]])
    return old, replace(old, num_nodes=size + 1, feats=feats, edges=edges, node_types=types, **more)


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_the_bit(name, tmp_path, monkeypatch):
    """Of a part of the graph, which says itself that it is one."""
    parts, of_part = [], changed.part_of
    monkeypatch.setattr(changed, "part_of", lambda *args: (parts.append(of_part(*args)), parts[-1])[1])
    torch.manual_seed(0)
    model, double = MODELS[name](), name in ("gated", "alone")
    model = model.double() if double else model
    old, new = graphs(directed=name in ("GCN", "gated", "layers"))
    how = {"ranks": 1, "quiet": True, "layers": "convs.0" if name == "layers" else ()}
    before, whole = dg.predict(model, old, **how), dg.predict(model, new, **how)
    again = dg.predict(model, new, changed=CHANGED, before=before, hops=HOPS.get(name), **how)
    if name != "layers":
        before, whole, again = ({"output": one} for one in (before, whole, again))
    count, reached = old.num_nodes, 0
    for key, one in whole.items():
        assert torch.equal(again[key], one) and one.dtype == (torch.float64 if double else torch.float32)
        reached = max(reached, int((one[:count] != before[key]).any(1).sum()))
    assert 2 <= reached < count and len(parts) == 1
    if name == "GCN":
        np.save(tmp_path / "z.npy", before["output"].numpy())
        path = dg.predict(model, new, changed=CHANGED, before=tmp_path / "z.npy", hops=2, out=tmp_path / "y.npy", **how)
        np.testing.assert_array_equal(np.load(path), whole["output"].numpy())


def test_refused():
    torch.manual_seed(0)
    model, other = MODELS["GCN"](), MODELS["GCN"]()
    old, new = graphs(directed=True)
    how = {"ranks": 1, "quiet": True}
    before, others = dg.predict(model, old, **how), dg.predict(other, old, **how)
    for asked, given, options, said in (
        (Centred(), before, {}, "reach over all of a path"),
        (pyg.models.GCN(WIDTH, 8, 2, 4, norm="PairNorm"), before, {}, "reach over all of a path"),
        (model, others, {}, "rows that no change reaches within 2 hops"),
        (model, before, {"hops": 1}, "rows that no change reaches within 1 hops"),
        (model, before[:, :3], {}, "give its earlier answer"),
        (model, None, {}, "needs before="),
        (model, "none.npy", {}, "before cannot be read as a .npy file: .*none.npy"),
        (model, before, {"changed": [2001]}, "no list of ids from 0 to 2000"),
        (model, torch.cat([before, before]), {}, "vertices cannot be taken out"),
        (model, before[:, :3], {"changed": range(1500)}, "give its earlier answer"),  # a whole pass is less work
        (model, others, {"changed": range(1500)}, "rows that no change reaches within 2 hops"),
    ):
        hops = None if "reach over" in said else 2
        with pytest.raises(InputError, match=said):
            dg.predict(asked, new, **{"changed": CHANGED, "before": given, "hops": hops, **options}, **how)
