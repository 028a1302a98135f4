"""Whole training loops for PyG around other targets, losses and optimisers, with one line changed."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from loops import MLP2, Net, accuracy, descend, loop, per_class_f1
from torch import nn
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    LabelPropagation,
    PairNorm,
    SAGEConv,
    TransformerConv,
)
from torch_geometric.utils import scatter


@loop()
def focal_loss_with_weights_of_classes(data):
    counts = torch.bincount(data.y[data.train_mask], minlength=4)
    weight = counts.sum() / (len(counts) * counts.clamp(min=1).to(data.x.dtype))
    model = Net(GCNConv, 16, norm=PairNorm(scale=1.0))
    optimizer = torch.optim.NAdam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=6)
    best, losses = (0.0, None), []
    for _ in range(6):
        logits = model(data.x, data.edge_index)[data.train_mask]
        ce = F.cross_entropy(logits, data.y[data.train_mask], weight=weight, reduction="none")
        pt = F.softmax(logits, -1).gather(1, data.y[data.train_mask].unsqueeze(1)).squeeze(1)
        loss = ((1 - pt) ** 2 * ce).mean()
        descend(optimizer, loss)
        scheduler.step()
        f1 = per_class_f1(model(data.x, data.edge_index), data.y, data.val_mask).mean()
        best = max(best, (f1, copy.deepcopy(model.state_dict())), key=lambda pair: pair[0])
        losses.append(loss.item())
    return losses, best, counts


def _regression(data, y):
    model = Net(SAGEConv, 16, out=1)
    optimizer, found = torch.optim.Adam(model.parameters(), lr=0.01), []
    mean, std = y[data.train_mask].mean(), y[data.train_mask].std()
    for _ in range(4):
        model.train()
        out = model(data.x, data.edge_index)
        out = out.squeeze(-1) if y.dim() == 1 else out
        loss = F.huber_loss(out[data.train_mask], (y[data.train_mask] - mean) / std)
        descend(optimizer, loss)
        with torch.no_grad():
            pred, true = out[data.test_mask] * std + mean, y[data.test_mask]
            r2 = 1 - ((true - pred) ** 2).sum() / ((true - true.mean()) ** 2).sum()
            found.append(
                [loss.item(), F.l1_loss(pred, true).item(), ((pred - true) ** 2).mean().sqrt().item(), r2.item()]
            )
    return found, model


@loop()
def regression_of_a_value(data):
    return _regression(data, data.x[:, 0] * 3 + data.y.to(data.x.dtype))


@loop()
def regression_of_a_column(data):
    return _regression(data, (data.x.sum(1, keepdim=True) + data.y.view(-1, 1)).sin())


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
def gradients_accumulated_over_chunks_with_averaged_weights(data):
    model, shadow, losses = Net(GraphConv, 16), {}, []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    shadow = {name: p.data.clone() for name, p in model.named_parameters() if p.requires_grad}
    train_idx = data.train_mask.nonzero(as_tuple=False).view(-1)
    for _ in range(3):
        optimizer.zero_grad()
        for chunk in train_idx[torch.randperm(train_idx.size(0))].split(16):
            loss = F.cross_entropy(model(data.x, data.edge_index)[chunk], data.y[chunk], reduction="sum") / len(
                train_idx
            )
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        for name, p in model.named_parameters():
            shadow[name].mul_(0.9).add_(p.data, alpha=0.1)
    backup = {name: p.data.clone() for name, p in model.named_parameters()}
    for name, p in model.named_parameters():
        p.data.copy_(shadow[name])
    averaged = accuracy(model(data.x, data.edge_index), data.y, data.test_mask)
    for name, p in model.named_parameters():
        p.data = backup[name]
    return losses, averaged, model, shadow


@loop(random=True)
def teacher_with_dropout_taught_to_a_perceptron(data):
    class Teacher(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = TransformerConv(8, 8, heads=2, dropout=0.3, beta=True)
            self.conv2, self.norm = TransformerConv(16, 4, concat=False), nn.LayerNorm(16)

        def forward(self, x, edge_index):
            x = F.dropout(x, 0.5, self.training)
            return self.conv2(F.gelu(self.norm(self.conv1(x, edge_index))), edge_index)

    teacher, losses = Teacher(), []
    student = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(teacher.parameters(), lr=0.01)
    for _ in range(3):
        teacher.train()
        loss = F.cross_entropy(teacher(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        losses.append(descend(optimizer, loss))
    teacher.eval()
    with torch.no_grad():
        soft = teacher(data.x, data.edge_index)
    optimizer, temperature, lam = torch.optim.Adam(student.parameters(), lr=0.01), 2.0, 0.3
    for _ in range(4):
        student.train()
        out = student(data.x)
        hard = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        kd = F.kl_div((out / temperature).log_softmax(1), (soft / temperature).softmax(1), reduction="batchmean")
        loss = lam * hard + (1 - lam) * temperature**2 * kd
        losses.append(descend(optimizer, loss))
    student.eval()
    return losses, student(data.x), accuracy(student(data.x), data.y, data.test_mask), student


@loop()
def own_labels_of_confident_vertices(data):
    model, y, train_mask = Net(GCNConv, 16), data.y.clone(), data.train_mask.clone()
    y[~train_mask] = -1
    optimizer, found = torch.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(3):
        for _ in range(3):
            out = model(data.x, data.edge_index)
            loss = F.cross_entropy(out, y, ignore_index=-1)
            descend(optimizer, loss)
        with torch.no_grad():
            conf, pred = model(data.x, data.edge_index).softmax(-1).max(dim=1)
        new = (conf > conf[~train_mask].mean()) & ~train_mask
        y[new] = pred[new]
        train_mask = train_mask | new
        found.append((loss.item(), int(new.sum()), conf.mean().item()))
    return found, y, model


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
