"""Whole training loops for PyG around other targets, losses and optimisers, with one line changed."""

import numpy as np
import torch
import torch.nn.functional as F
from loops import MLP2, Net, accuracy, descend, loop
from torch import nn
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    LabelPropagation,
    SAGEConv,
)
from torch_geometric.utils import scatter


@loop()
def several_labels_with_binary_entropy(data):
    y = torch.stack([data.y == 0, data.y > 1, data.x[:, 0] > 0], dim=1).to(data.x.dtype)
    positive = y[data.train_mask].sum(0)
    model = Net(GATConv, 16, out=3)
    criterion = nn.BCEWithLogitsLoss(pos_weight=(data.train_mask.sum() - positive) / positive)
    optimizer, found = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(4):
        loss = criterion(model(data.x, data.edge_index)[data.train_mask], y[data.train_mask])
        descend(optimizer, loss)
        pred = (model(data.x, data.edge_index).sigmoid() > 0.5)[data.val_mask].numpy()
        true = y[data.val_mask].numpy().astype(bool)
        tp, fp, fn = (pred & true).sum(0), (pred & ~true).sum(0), (~pred & true).sum(0)
        found.append(
            [loss.item(), *(2 * tp / np.maximum(2 * tp + fp + fn, 1)), 2 * tp.sum() / (2 * tp + fp + fn).sum()]
        )
    return found, model


@loop()
def labels_propagated_then_reused_as_features(data):
    prior = LabelPropagation(num_layers=3, alpha=0.9)(data.y, data.edge_index, mask=data.train_mask)
    model, losses = Net(GCNConv, 16, wide=8 + 4 + 4), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train_idx = data.train_mask.nonzero().squeeze()

    def with_labels(ids):
        onehot = torch.zeros([data.num_nodes, 4], dtype=data.x.dtype)
        onehot[ids, data.y[ids]] = 1
        return torch.cat([data.x, prior, onehot], dim=-1)

    for _ in range(4):
        mask = torch.rand(train_idx.shape) < 0.5
        known, wanted = train_idx[mask], train_idx[~mask]
        out = model(with_labels(known), data.edge_index)
        loss = F.cross_entropy(out[wanted], data.y[wanted])
        losses.append(descend(optimizer, loss))
    return losses, accuracy(model(with_labels(train_idx), data.edge_index), data.y, data.val_mask), model


@loop(random=True)
def perturbed_features_by_ascent(data):
    """FLAG: three steps of ascent on a perturbation of rows, and one of descent on the weights."""
    model, losses = Net(SAGEConv, 16, norm=nn.BatchNorm1d(16)), []
    optimizer, step_size, m = torch.optim.Adam(model.parameters(), lr=0.01), 1e-2, 3
    for _ in range(3):
        model.train()
        optimizer.zero_grad()
        perturb = torch.empty_like(data.x).uniform_(-step_size, step_size)
        perturb.requires_grad_()
        for _ in range(m):
            out = model(data.x + perturb, data.edge_index)
            loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) / m
            loss.backward()
            perturb.data = perturb.detach() + step_size * torch.sign(perturb.grad.detach())
            perturb.grad[:] = 0
        optimizer.step()
        losses.append(loss.item())
    return losses, model


@loop()
def sharpness_aware_steps_of_gin(data):
    convs = nn.ModuleList(GINConv(MLP2(wide, 16, out), train_eps=True) for wide, out in ((8, 16), (16, 4)))
    base, losses = torch.optim.SGD(convs.parameters(), lr=0.05, momentum=0.9), []

    def value():
        out = convs[1](convs[0](data.x, data.edge_index).relu(), data.edge_index)
        return F.cross_entropy(out[data.train_mask], data.y[data.train_mask])

    for _ in range(3):
        loss = value()
        base.zero_grad()
        loss.backward()
        norm = torch.norm(torch.stack([p.grad.norm(p=2) for p in convs.parameters()]), p=2)
        kept = {}
        with torch.no_grad():
            for p in convs.parameters():
                kept[p] = p.grad * (0.05 / (norm + 1e-12))
                p.add_(kept[p])
        base.zero_grad()
        value().backward()
        with torch.no_grad():
            for p in convs.parameters():
                p.sub_(kept[p])
        base.step()
        losses += [loss.item(), norm.item()]
    return losses, convs


@loop()
def smoothness_of_the_graph_as_a_penalty(data):
    """P-Reg and a Laplacian term: differences along arcs, means over neighbours."""
    model, losses = Net(GCNConv, 16), []
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    row, col = data.edge_index
    for _ in range(4):
        out = model(data.x, data.edge_index)
        prob = out.softmax(-1)
        mean = scatter(prob[row], col, dim=0, dim_size=data.num_nodes, reduce="mean")
        rough = (prob[row] - prob[col]).pow(2).sum(-1).mean()
        loss = (
            F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + 0.1 * F.mse_loss(mean, prob) + 0.1 * rough
        )
        descend(optimizer, loss)
        losses.append((loss.item(), rough.item()))
    return losses, model
