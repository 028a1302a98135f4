"""Whole training loops as people publish them for PyG, with one line changed: where the graph comes from."""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from loops import Net, accuracy, descend, loop, per_class_f1
from torch import nn
from torch_geometric.nn import GATv2Conv, GCNConv, JumpingKnowledge, MessagePassing, SAGEConv, SGConv
from torch_geometric.utils import degree


@loop()
def early_stopping_with_the_best_state(data):
    model = Net(GCNConv, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.2, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    best_val, best_state, bad, history = float("inf"), None, 0, []
    for epoch in range(30):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(data.x, data.edge_index)
            val_loss = F.cross_entropy(out[data.val_mask], data.y[data.val_mask]).item()
        scheduler.step(val_loss)
        history.append((epoch, loss.item(), float(norm), val_loss, optimizer.param_groups[0]["lr"]))
        if val_loss < best_val:
            best_val, best_state, bad = val_loss, copy.deepcopy(model.state_dict()), 0
        else:
            bad += 1
            if bad == 3:
                break
    model.load_state_dict(best_state)
    out = model(data.x, data.edge_index)
    return history, [accuracy(out, data.y, mask) for mask in (data.train_mask, data.val_mask, data.test_mask)], model


@loop()
def mixup_of_features_and_labels(data):
    np.random.seed(1)
    model = Net(SAGEConv, 16)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    onehot = F.one_hot(data.y, 4).to(data.x.dtype)
    for _ in range(4):
        lam, perm = np.random.beta(4.0, 4.0), torch.randperm(data.num_nodes)
        x = lam * data.x + (1 - lam) * data.x[perm]
        target = lam * onehot + (1 - lam) * onehot[perm]
        out = model(x, data.edge_index)
        loss = -(target * out.log_softmax(-1)).sum(-1)[data.train_mask].mean()
        losses.append(descend(optimizer, loss))
    return losses, model


@loop()
def own_split_by_randperm(data):
    order, num = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(3)), data.num_nodes
    split = {
        "train": order[: int(0.6 * num)],
        "val": order[int(0.6 * num) : int(0.8 * num)],
        "test": order[int(0.8 * num) :],
    }
    for name, ids in split.items():
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[ids] = True
        data[f"{name}_mask"] = mask
    model, results = Net(GCNConv, 16, norm=nn.LayerNorm(16)), []
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
    for epoch in range(4):
        model.train()
        out = model(data.x, data.edge_index)
        loss = F.nll_loss(F.log_softmax(out[data.train_mask], dim=1), data.y[data.train_mask])
        descend(optimizer, loss)
        pred = out.argmax(1)
        results.append(
            [epoch, loss.item(), *((pred[ids] == data.y[ids]).sum().item() / len(ids) for ids in split.values())]
        )
    return results, model


@loop()
def columns_standardised_and_transformed(data):
    import torch_geometric.transforms as T

    data = T.Compose([T.NormalizeFeatures(), T.Constant(value=1.0, cat=True)])(data)
    mean, std = data.x[data.train_mask].mean(0), data.x[data.train_mask].std(0)
    data.x = (data.x - mean) / (std + 1e-6)
    deg = degree(data.edge_index[0], data.num_nodes).view(-1, 1)
    data.x = torch.cat([data.x, deg.log1p() / deg.max().log1p()], dim=-1)
    model = Net(GCNConv, 16, wide=data.x.size(1), norm=nn.BatchNorm1d(16))
    optimizer, losses = torch.optim.Adam(model.parameters(), 0.01), []
    for _ in range(4):
        model.train()
        loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        losses.append(descend(optimizer, loss))
    model.eval()
    return losses, mean, std, data.x, model(data.x, data.edge_index), model


@loop()
def sgc_with_lbfgs(data):
    model = SGConv(data.num_features, 4, K=2, cached=True)
    optimizer, losses = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=5, line_search_fn="strong_wolfe"), []

    def closure():
        optimizer.zero_grad()
        out = model(data.x, data.edge_index).log_softmax(dim=-1)
        l2 = 5e-4 * sum(p.pow(2).sum() for p in model.parameters())
        loss = F.nll_loss(out[data.train_mask], data.y[data.train_mask]) + l2
        loss.backward()
        return loss

    for _ in range(3):
        losses.append(float(optimizer.step(closure)))
    return losses, model


@loop()
def jumping_knowledge_and_the_average_of_late_weights(data):
    class JK(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList([GCNConv(data.num_features, 16), GCNConv(16, 16), GCNConv(16, 16)])
            self.bns = nn.ModuleList(nn.BatchNorm1d(16) for _ in range(3))
            self.jump, self.lin = JumpingKnowledge("cat"), nn.Linear(48, 4)

        def forward(self, x, edge_index):
            xs = []
            for conv, bn in zip(self.convs, self.bns, strict=True):
                x = F.relu(bn(conv(x, edge_index)))
                xs.append(x)
            return self.lin(self.jump(xs))

    model, losses = JK(), []
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    swa = torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
    for epoch in range(6):
        model.train()
        loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        descend(optimizer, loss)
        if epoch >= 3:
            average.update_parameters(model)
            swa.step()
        else:
            cosine.step()
        losses.append(loss.item())
    average.train()
    with torch.no_grad():  # the statistics of batch norm, of averaged weights
        average(data.x, data.edge_index)
    average.eval()
    return losses, average(data.x, data.edge_index), average


@loop(world="web")
def attention_with_features_of_edges(data):
    conv1, conv2 = GATv2Conv(data.num_features, 4, heads=2, edge_dim=5), GATv2Conv(8, 4, concat=False, edge_dim=5)
    model = nn.ModuleList([conv1, conv2])
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    edge_attr = (data.edge_attr - data.edge_attr.mean(0)) / data.edge_attr.std(0)
    for _ in range(4):
        optimizer.zero_grad()
        h = F.elu(conv1(data.x, data.edge_index, edge_attr))
        out = conv2(h, data.edge_index, edge_attr)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.item())
    return losses, accuracy(out, data.y, data.val_mask), model


@loop(world="web")
def own_layer_and_a_weight_per_arc(data):
    class Conv(MessagePassing):
        def __init__(self, wide, out):
            super().__init__(aggr="add")
            self.lin, self.bias = nn.Linear(wide, out, bias=False), nn.Parameter(torch.zeros(out))

        def forward(self, x, edge_index, weight):
            row, col = edge_index
            deg = degree(col, x.size(0), dtype=x.dtype)
            deg_inv_sqrt = deg.pow(-0.5)
            deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
            norm = deg_inv_sqrt[row] * weight * deg_inv_sqrt[col]
            return self.propagate(edge_index, x=self.lin(x), norm=norm) + self.bias

        def message(self, x_j, norm):
            return norm.view(-1, 1) * x_j

    convs, gate = nn.ModuleList([Conv(data.num_features, 16), Conv(16, 4)]), nn.Parameter(torch.zeros(data.num_edges))
    optimizer = torch.optim.Adam([{"params": convs.parameters()}, {"params": [gate], "lr": 0.1}], lr=0.01)
    losses = []
    for _ in range(4):
        weight = torch.sigmoid(gate) * data.edge_weight
        out = convs[1](F.relu(convs[0](data.x, data.edge_index, weight)), data.edge_index, weight)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask]) + 1e-2 * torch.sigmoid(gate).mean()
        losses.append(descend(optimizer, loss))
    return losses, per_class_f1(out, data.y, data.test_mask), convs, gate
