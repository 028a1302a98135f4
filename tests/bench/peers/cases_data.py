"""Habits of a PyG Data, its transforms and functions, and what scripts do around a model."""

import copy

import torch
import torch.nn.functional as F
import torch_geometric.nn as gnn
import torch_geometric.transforms as T
import torch_geometric.utils as U
from cases import calls, case
from loops import descend
from torch import nn
from worlds import NUM_CLASSES, WIDTH

DATA = "habits of Data"
UTILS = "functions of PyG"
HABITS = "habits of scripts"


def _net(s):
    model = s.distribute(nn.ModuleList([gnn.GCNConv(WIDTH, 8), gnn.GCNConv(8, NUM_CLASSES)]))
    return model, lambda: model[1](F.relu(model[0](s.g.x, s.g.edge_index)), s.g.edge_index)


DATA_TEXTS = {
    "num_nodes": lambda g: g.num_nodes + 0,
    "num_edges": lambda g: g.num_edges + 0,
    "num_features": lambda g: g.num_features,
    "num_node_features": lambda g: g.num_node_features,
    "num_edge_features": lambda g: g.num_edge_features,
    "item": lambda g: g["x"] * 1,
    "items": lambda g: [g[name] * 1 for name in ("x", "y")],
    "keys": lambda g: sorted(name for name in g.keys() if name in ("x", "y", "train_mask", "edge_index")),
    "contains": lambda g: ("x" in g, "nothing" in g, "edge_index" in g),
    "called with names": lambda g: [value.sum() for _, value in g("train_mask", "val_mask", "test_mask")],
    "clone": lambda g: g.clone().x * 1,
    "copy": lambda g: copy.copy(g).x * 1,
    "to": lambda g: g.to("cpu").x * 1,
    "to device": lambda g: g.to(torch.device("cpu"), non_blocking=True).x * 1,
    "cpu": lambda g: g.cpu().x * 1,
    "contiguous": lambda g: g.contiguous().x * 1,
    "is_directed": lambda g: g.is_directed(),
    "is_undirected": lambda g: g.is_undirected(),
    "has_isolated_nodes": lambda g: g.has_isolated_nodes(),
    "has_self_loops": lambda g: g.has_self_loops(),
    "classes": lambda g: int(g.y.max()) + 1,
    "shape of edge_index": lambda g: (g.edge_index.size(1), g.edge_index.shape[0], g.edge_index.dtype),
    "average degree": lambda g: g.num_edges / g.num_nodes,
    "train rate": lambda g: int(g.train_mask.sum()) / g.num_nodes,
    "masks": lambda g: (g.train_mask | g.val_mask, ~g.test_mask, (g.train_mask & g.val_mask).any()),
    "mask to ids": lambda g: g.x[g.train_mask.nonzero(as_tuple=False).view(-1)],
    "num_nodes of y": lambda g: (g.y.size(0), len(g.y), g.y.numel()),
    "dim": lambda g: (g.x.dim(), g.x.ndim, g.x.dtype, g.x.device, g.x.is_floating_point()),
    "validate": lambda g: g.validate(),
    "is_sparse": lambda g: (g.x.is_sparse, g.x.requires_grad, g.x.is_cuda),
    "get": lambda g: g.get("nothing") is None,
    "hasattr": lambda g: (hasattr(g, "x"), hasattr(g, "nothing"), hasattr(g, "adj_t")),
    "subgraph": lambda g: g.subgraph(torch.arange(10)).x,
    "coalesce": lambda g: g.coalesce().x,
    "to_dict": lambda g: g.to_dict()["x"] * 1,
    "stores": lambda g: g.stores[0]["x"] * 1,
    "num_nodes called": lambda g: g.num_nodes if isinstance(g.num_nodes, int) else g.num_nodes(),
    "numpy of labels": lambda g: g.y.numpy().copy(),
    "numpy of rows": lambda g: g.x.numpy()[:7].copy(),
    "list of labels": lambda g: sum(g.y.tolist()[:9]),
    "cpu numpy": lambda g: g.x.detach().cpu().numpy().mean(0),
    "iterated masks": lambda g: [int(mask.sum()) for mask in (g.train_mask, g.val_mask, g.test_mask)],
}
calls(DATA, {name: lambda s, read=read: read(s.g) for name, read in DATA_TEXTS.items()})


@case(DATA, "a column set")
def column_set(s):
    s.g.z = s.g.x * 2
    found = s.g.z + s.g["z"]
    del s.g.z
    return found


@case(DATA, "features set")
def features_set(s):
    before = s.g.x
    s.g.x = F.normalize(before, dim=1)
    out = gnn.GCNConv(WIDTH, 4)(s.g.x, s.g.edge_index)
    s.g.x = before
    return out


@case(DATA, "a plain column set")
def plain_column(s):
    s.g.n_id = torch.arange(s.num_nodes)
    found = s.g.x * s.g.n_id.unsqueeze(1)
    del s.g.n_id
    return found


@case(DATA, "an item set")
def item_set(s):
    s.g["w"] = s.g.x.sum(1)
    found = s.g["w"] * 1
    del s.g["w"]
    return found


@case(DATA, "a mask set")
def mask_set(s):
    before = s.g.train_mask
    s.g.train_mask = torch.zeros(s.num_nodes, dtype=torch.bool)
    s.g.train_mask[s.ids.train[:5]] = True
    found = s.g.x[s.g.train_mask]
    s.g.train_mask = before
    return found


@case(DATA, "an accuracy as PyG's examples have it", world="pages")
def accuracy(s):
    model, rows = _net(s)
    model.eval()
    with torch.no_grad():
        predicted = rows().argmax(dim=-1)
        found = []
        for mask in [s.g.train_mask, s.g.val_mask, s.g.test_mask]:
            found.append(int((predicted[mask] == s.g.y[mask]).sum()) / int(mask.sum()))
    return found


TRANSFORMS = {
    "NormalizeFeatures": T.NormalizeFeatures(),
    "ToUndirected": T.ToUndirected(),
    "AddSelfLoops": T.AddSelfLoops(),
    "GCNNorm": T.GCNNorm(),
    "LocalDegreeProfile": T.LocalDegreeProfile(),
    "OneHotDegree": T.OneHotDegree(70),
    "Constant": T.Constant(),
    "RandomNodeSplit": T.RandomNodeSplit(),
    "AddLaplacianEigenvectorPE": T.AddLaplacianEigenvectorPE(2),
    "AddRandomWalkPE": T.AddRandomWalkPE(2),
    "SIGN": T.SIGN(2),
    "LargestConnectedComponents": T.LargestConnectedComponents(),
    "SVDFeatureReduction": T.SVDFeatureReduction(3),
    "RemoveIsolatedNodes": T.RemoveIsolatedNodes(),
    "Pad": T.Pad(100),
    "ToDevice": T.ToDevice("cpu"),
    "Compose": T.Compose([T.NormalizeFeatures(), T.ToDevice("cpu")]),
    "RootedEgoNets": T.RootedEgoNets(1),
    "VirtualNode": T.VirtualNode(),
    "LineGraph": T.LineGraph(),
    "FeaturePropagation": T.FeaturePropagation(torch.zeros(61, WIDTH, dtype=torch.bool)),
    "RandomNodeSplit seeded": T.RandomNodeSplit(num_val=5, num_test=5),
}
for transform_name, make_transform in TRANSFORMS.items():

    @case(DATA, f"T.{transform_name}", random="Random" in transform_name)
    def transformed(s, make_transform=make_transform):
        g = make_transform(s.g.clone() if not s.dg else s.g)
        out = gnn.GCNConv(g.x.size(1), 4)(g.x, g.edge_index)
        return {"out": out, "num_edges": g.num_edges if isinstance(g.num_edges, int) else -1}


UTILS_CALLS = {
    "degree": lambda s: U.degree(s.g.edge_index[0], s.num_nodes),
    "degree of targets": lambda s: U.degree(s.g.edge_index[1], s.num_nodes, torch.long),
    "add_self_loops": lambda s: gnn.SimpleConv()(s.x, U.add_self_loops(s.g.edge_index, num_nodes=s.num_nodes)[0]),
    "remove_self_loops": lambda s: gnn.SimpleConv()(s.x, U.remove_self_loops(s.g.edge_index)[0]),
    "add_remaining_self_loops": lambda s: gnn.SimpleConv()(
        s.x, U.add_remaining_self_loops(s.g.edge_index, num_nodes=s.num_nodes)[0]
    ),
    "to_undirected": lambda s: gnn.SimpleConv()(s.x, U.to_undirected(s.g.edge_index)),
    "coalesce": lambda s: gnn.SimpleConv()(s.x, U.coalesce(s.g.edge_index)),
    "is_undirected": lambda s: U.is_undirected(s.g.edge_index),
    "contains_self_loops": lambda s: U.contains_self_loops(s.g.edge_index),
    "contains_isolated_nodes": lambda s: U.contains_isolated_nodes(s.g.edge_index, s.num_nodes),
    "homophily": lambda s: U.homophily(s.g.edge_index, s.y),
    "homophily of nodes": lambda s: U.homophily(s.g.edge_index, s.y, method="node"),
    "homophily insensitive": lambda s: U.homophily(s.g.edge_index, s.y, method="edge_insensitive"),
    "assortativity": lambda s: U.assortativity(s.g.edge_index),
    "softmax": lambda s: U.softmax(s.x[s.g.edge_index[0]], s.g.edge_index[1], num_nodes=s.num_nodes).sum(),
    "scatter": lambda s: U.scatter(s.x[s.g.edge_index[0]], s.g.edge_index[1], 0, s.num_nodes, "mean"),
    "scatter max": lambda s: U.scatter(s.x[s.g.edge_index[0]], s.g.edge_index[1], 0, s.num_nodes, "max"),
    "scatter by labels": lambda s: U.scatter(s.x, s.y, 0, NUM_CLASSES, "sum"),
    "to_dense_adj": lambda s: U.to_dense_adj(s.g.edge_index, max_num_nodes=s.num_nodes)[0],
    "to_dense_batch": lambda s: U.to_dense_batch(s.x)[0][0],
    "to_scipy": lambda s: U.to_scipy_sparse_matrix(s.g.edge_index, num_nodes=s.num_nodes).sum(1),
    "to_networkx": lambda s: U.to_networkx(s.g).number_of_edges(),
    "get_laplacian": lambda s: gnn.SimpleConv()(s.x, *U.get_laplacian(s.g.edge_index, num_nodes=s.num_nodes)),
    "k_hop_subgraph": lambda s: U.k_hop_subgraph([3], 2, s.g.edge_index, num_nodes=s.num_nodes)[0],
    "subgraph": lambda s: U.subgraph(s.ids.train, s.g.edge_index, num_nodes=s.num_nodes)[0],
    "subgraph of a mask": lambda s: gnn.SimpleConv()(s.x, U.subgraph(s.train_mask, s.g.edge_index)[0]),
    "index_to_mask": lambda s: s.x[U.index_to_mask(s.ids.train, s.num_nodes)],
    "mask_to_index": lambda s: s.x[U.mask_to_index(s.train_mask)],
    "one_hot": lambda s: U.one_hot(s.y, NUM_CLASSES),
    "to_edge_index": lambda s: U.to_torch_csr_tensor(s.g.edge_index).to_dense().sum(0),
    "sort_edge_index": lambda s: gnn.SimpleConv()(s.x, U.sort_edge_index(s.g.edge_index)),
    "maybe_num_nodes": lambda s: U.num_nodes.maybe_num_nodes(s.g.edge_index) > 0,
    "dense_to_sparse": lambda s: U.dense_to_sparse((s.x @ s.x.t() > 3).double())[0],
    "tree_decomposition": lambda s: U.cumsum(s.y),
    "flow reversed": lambda s: gnn.SimpleConv()(s.x, s.g.edge_index.flip(0)),
    "both directions": lambda s: gnn.SimpleConv()(s.x, torch.cat([s.g.edge_index, s.g.edge_index.flip(0)], 1)),
    "stacked rows": lambda s: gnn.SimpleConv()(s.x, torch.stack([s.g.edge_index[1], s.g.edge_index[0]])),
    "arcs counted": lambda s: (s.g.edge_index[0] == s.g.edge_index[1]).sum(),
    "arcs chosen": lambda s: gnn.SimpleConv()(s.x, s.g.edge_index[:, s.g.edge_weight > 1]),
    "sparse adjacency": lambda s: (
        torch.sparse_coo_tensor(s.g.edge_index, torch.ones(s.g.edge_index.size(1)), (s.num_nodes, s.num_nodes)) @ s.x
    ),
    "arcs to a list": lambda s: len(s.g.edge_index.t().tolist()),
    "arcs to numpy": lambda s: s.g.edge_index.numpy().shape[1],
    "largest id": lambda s: int(s.g.edge_index.max()) + 1,
    "arcs between classes": lambda s: (s.y[s.g.edge_index[0]] == s.y[s.g.edge_index[1]]).double().mean(),
    "confusion of arcs": lambda s: torch.bincount(
        s.y[s.g.edge_index[0]] * NUM_CLASSES + s.y[s.g.edge_index[1]], minlength=NUM_CLASSES**2
    ),
}
calls(UTILS, UTILS_CALLS)


@case(HABITS)
def metrics_of_scikit_learn(s):
    from sklearn.metrics import f1_score, roc_auc_score

    with torch.no_grad():
        scores = _net(s)[1]().softmax(1)
    truth, scores, held_out = s.y.cpu().numpy(), scores.cpu().numpy(), (~s.train_mask).numpy()
    known = held_out & (truth >= 0)
    return [
        roc_auc_score(truth[known], scores[known], multi_class="ovr", labels=range(NUM_CLASSES)),
        f1_score(truth[known], scores[known].argmax(1), average="macro"),
    ]


@case(HABITS)
def a_confusion_matrix(s):
    guess = _net(s)[1]().argmax(1)
    cells = [[((s.y == row) & (guess == column)).sum() for column in range(NUM_CLASSES)] for row in range(NUM_CLASSES)]
    return {"cells": cells, "at once": torch.bincount(s.y * NUM_CLASSES + guess, minlength=NUM_CLASSES**2)}


@case(HABITS)
def a_loader_of_training_ids(s):
    model, rows = _net(s)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader(s.train_mask.nonzero().flatten(), batch_size=12)
    return [descend(optimizer, F.cross_entropy(rows()[ids], s.y[ids])) for ids in loader]


@case(HABITS)
def whitened_features(s):
    rows = s.g.x - s.g.x.mean(0)
    vectors, sizes, _ = torch.linalg.svd(rows.t() @ rows / (s.num_nodes - 1))
    return {"sizes": sizes, "most": (rows @ vectors).abs().max()}


@case(HABITS)
def distances_to_means_of_classes(s):
    rows = _net(s)[1]()
    means = torch.stack([rows[s.train_mask & (s.y == one)].mean(0) for one in range(NUM_CLASSES)])
    return F.cross_entropy(-torch.cdist(rows, means)[s.train_mask], s.y[s.train_mask])


calls(
    HABITS,
    {
        "sums by class": lambda s: torch.zeros(NUM_CLASSES, WIDTH).index_add_(0, s.y.clamp(min=0), s.g.x),
        "through numpy and back": lambda s: (torch.from_numpy(s.g.x.numpy() * 2) - s.g.x).abs().sum(),
    },
)
