"""Whole training loops as people publish them for DGL, with one line changed: where the graph comes from."""

import functools

import dgl
import dgl.function as fn
import dgl.nn as dglnn
import torch
import torch.nn.functional as F
from loops import MLP2, accuracy, descend, loop, per_class_f1
from torch import nn


class Layers(nn.Module):
    """Two layers of DGL."""

    def __init__(self, make, hidden=16, wide=8, out=4):
        super().__init__()
        self.layers = nn.ModuleList([make(wide, hidden), make(hidden, out)])

    def forward(self, g, h, **options):
        return self.layers[1](g, F.relu(self.layers[0](g, h, **options)), **options)


graph_conv = functools.partial(dglnn.GraphConv, allow_zero_in_degree=True)
sage = functools.partial(dglnn.SAGEConv, aggregator_type="mean")


def run(g, model, epochs=4, lr=0.01, **options):
    """Losses of cross entropy, as the rest of a loop that is about its model."""
    optimizer, losses, feat, label = torch.optim.Adam(model.parameters(), lr=lr), [], g.ndata["feat"], g.ndata["label"]
    for _ in range(epochs):
        model.train()
        loss = F.cross_entropy(model(g, feat, **options)[g.ndata["train_mask"]], label[g.ndata["train_mask"]])
        losses.append(descend(optimizer, loss))
    model.eval()
    with torch.no_grad():
        out = model(g, feat, **options)
    return (
        losses,
        [accuracy(out, label, g.ndata[name]) for name in ("train_mask", "val_mask", "test_mask")],
        per_class_f1(out, label, g.ndata["test_mask"]),
        model,
    )


@loop("dgl")
def self_loops_and_reverse_arcs_added_first(g):
    g = dgl.add_self_loop(dgl.remove_self_loop(g))
    degs = g.in_degrees().to(g.ndata["feat"].dtype)
    norm = torch.pow(degs, -0.5)
    norm[torch.isinf(norm)] = 0
    g.ndata["norm"] = norm.unsqueeze(1)
    return run(g, Layers(graph_conv))


@loop("dgl", world="web")
def scores_of_all_arcs_and_a_margin(g):
    """Its own arcs against shuffled ends."""
    model, losses = Layers(sage, out=8), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        h = model(g, g.ndata["feat"])
        with g.local_scope():
            g.ndata["h"], g.ndata["n"] = h, h[torch.randperm(g.num_nodes())]
            g.apply_edges(fn.u_dot_v("h", "h", "pos"))
            g.apply_edges(fn.u_dot_v("h", "n", "neg"))
            loss = (1 - g.edata["pos"] + g.edata["neg"]).clamp(min=0).mean()
        losses.append(descend(optimizer, loss))
    return losses, model


@loop("dgl", world="web")
def relations_with_self_loops(g):
    class RGCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(g.num_nodes(), 8)
            self.one = dglnn.RelGraphConv(8, 16, 3, regularizer="basis", num_bases=2, self_loop=True)
            self.two = dglnn.RelGraphConv(16, 4, 3, regularizer="bdd", num_bases=2)

        def forward(self, g, h):
            return self.two(g, self.one(g, h + self.emb.weight, g.edata["etype"]).relu(), g.edata["etype"])

    return run(g, RGCN())


@loop("dgl")
def predictions_corrected_and_smoothed(g):
    class LabelPropagation(nn.Module):
        """As in DGL's example of Correct & Smooth."""

        def __init__(self, num_layers, alpha):
            super().__init__()
            self.num_layers, self.alpha = num_layers, alpha

        @torch.no_grad()
        def forward(self, g, y, post_step):
            with g.local_scope():
                last = (1 - self.alpha) * y
                norm = torch.pow(g.in_degrees().to(y.dtype).clamp(min=1), -0.5).unsqueeze(1)
                for _ in range(self.num_layers):
                    g.ndata["h"] = norm * y
                    g.update_all(fn.copy_u("h", "m"), fn.sum("m", "h"))
                    y = post_step(last + self.alpha * g.ndata.pop("h") * norm)
                return y

    class OnFeatures(nn.Module):
        def __init__(self):
            super().__init__()
            self.mlp = MLP2(8, 16, 4)

        def forward(self, g, h):
            return self.mlp(h)

    losses, _, _, model = run(g, OnFeatures())
    y_soft, mask, label = model(g, g.ndata["feat"]).softmax(-1).detach(), g.ndata["train_mask"], g.ndata["label"]
    y_true = F.one_hot(label, 4).to(y_soft.dtype)
    error = torch.zeros_like(y_soft)
    error[mask] = y_true[mask] - y_soft[mask]
    smoothed = LabelPropagation(5, 0.8)(g, error, lambda x: x.clamp(-1.0, 1.0))
    sigma = error[mask].abs().sum() / mask.sum()
    scale = sigma / smoothed.abs().sum(dim=1, keepdim=True)
    scale[scale.isinf() | (scale > 1000)] = 1.0
    result = y_soft + scale * smoothed
    result[result.isnan()] = y_soft[result.isnan()]
    result[mask] = y_true[mask]
    result = LabelPropagation(5, 0.8)(g, result, lambda x: x.clamp(0.0, 1.0))
    return losses, result, accuracy(result, label, g.ndata["test_mask"])


@loop("dgl", random=True)
def random_propagation_with_consistency(g):
    """GRAND: rows dropped whole, a mixed-order propagation, a sharpened mean as the target."""
    mlp, feat, label, mask = MLP2(8, 16, 4), g.ndata["feat"], g.ndata["label"], g.ndata["train_mask"]
    optimizer, losses = torch.optim.Adam(mlp.parameters(), lr=0.01), []

    def propagate(x, order=3):
        with g.local_scope():
            norm = torch.pow(g.in_degrees().to(x.dtype).clamp(min=1), -0.5).unsqueeze(1)
            y = g.ndata["h"] = x
            for _ in range(order):
                g.ndata["h"] = g.ndata["h"] * norm
                g.update_all(fn.copy_u("h", "m"), fn.sum("m", "h"))
                g.ndata["h"] = g.ndata["h"] * norm
                y = y + g.ndata["h"]
            return y / (order + 1)

    for _ in range(3):
        outs = []
        for _ in range(2):
            keep = torch.bernoulli(torch.full((g.num_nodes(),), 0.5)).unsqueeze(1)
            outs.append(F.log_softmax(mlp(F.dropout(propagate(keep * feat), 0.2)), dim=-1))
        loss = sum(F.nll_loss(out[mask], label[mask]) for out in outs) / 2
        mean = torch.stack([out.exp() for out in outs], 2).mean(2)
        sharp = (mean.pow(2) / mean.pow(2).sum(1, keepdim=True)).detach()
        loss = loss + sum((out.exp() - sharp).pow(2).sum(1).mean() for out in outs) / 2
        losses.append(descend(optimizer, loss))
    return losses, mlp


@loop("dgl")
def views_of_dropped_edges_and_masked_features(g):
    transform = dgl.Compose([dgl.DropEdge(0.3), dgl.FeatMask(0.3, node_feat_names=["feat"])])
    model, losses = Layers(sage, out=8), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        one, two = (transform(g) for _ in range(2))
        loss = -F.cosine_similarity(model(one, one.ndata["feat"]), model(two, two.ndata["feat"])).mean()
        losses.append(descend(optimizer, loss))
    return losses, model
