"""Every pool and aggregation of `torch_geometric.nn` that runs without compiled extras."""

import torch_geometric.nn as gnn
from cases_pyg_layers import DEGREES, OUT, alone, by_batch, linear, one_batch, plain
from layer_cases import Function, add_layer
from torch_geometric.nn import aggr as aggregations
from worlds import WIDTH

POOLS = {
    "global_add_pool": (lambda: Function(lambda x: gnn.global_add_pool(x, None)), alone),
    "global_mean_pool": (lambda: Function(lambda x: gnn.global_mean_pool(x, None)), alone),
    "global_max_pool": (lambda: Function(lambda x: gnn.global_max_pool(x, None)), alone),
    "global_mean_pool by batch": (lambda: Function(gnn.global_mean_pool), by_batch),
    "global_add_pool by labels": (lambda: Function(gnn.global_add_pool), lambda m, s, x: m(x, s.y)),
    "TopKPooling": (lambda: gnn.TopKPooling(WIDTH, 0.5), plain),
    "SAGPooling": (lambda: gnn.SAGPooling(WIDTH, 0.5), plain),
    "EdgePooling": (lambda: gnn.EdgePooling(WIDTH), one_batch),
    "ClusterPooling": (lambda: gnn.pool.ClusterPooling(WIDTH), one_batch),
    "ASAPooling": (lambda: gnn.ASAPooling(WIDTH, 0.5), plain),
    "MemPooling": (lambda: gnn.MemPooling(WIDTH, OUT, 2, 3), alone),
    "avg_pool_neighbor_x": (lambda: Function(lambda g: gnn.avg_pool_neighbor_x(g).x), lambda m, s, x: m(s.g)),
    "max_pool_neighbor_x": (lambda: Function(lambda g: gnn.max_pool_neighbor_x(g).x), lambda m, s, x: m(s.g)),
}


def _aggregations():
    """Each aggregation of `torch_geometric.nn.aggr` over arcs, and over all vertices."""
    special = {
        "SoftmaxAggregation": lambda: aggregations.SoftmaxAggregation(learn=True),
        "PowerMeanAggregation": lambda: aggregations.PowerMeanAggregation(learn=True),
        "QuantileAggregation": lambda: aggregations.QuantileAggregation(0.3),
        "LSTMAggregation": lambda: aggregations.LSTMAggregation(WIDTH, WIDTH),
        "GRUAggregation": lambda: aggregations.GRUAggregation(WIDTH, WIDTH),
        "Set2Set": lambda: aggregations.Set2Set(WIDTH, 2),
        "SortAggregation": lambda: aggregations.SortAggregation(2),
        "AttentionalAggregation": lambda: aggregations.AttentionalAggregation(linear(WIDTH, 1), linear(WIDTH, WIDTH)),
        "MLPAggregation": lambda: aggregations.MLPAggregation(WIDTH, WIDTH, 60, num_layers=1, norm=None),
        "DeepSetsAggregation": lambda: aggregations.DeepSetsAggregation(linear(WIDTH, WIDTH), linear(WIDTH, WIDTH)),
        "SetTransformerAggregation": lambda: aggregations.SetTransformerAggregation(WIDTH, heads=2),
        "GraphMultisetTransformer": lambda: aggregations.GraphMultisetTransformer(WIDTH, 4, heads=2),
        "MultiAggregation": lambda: aggregations.MultiAggregation(["mean", "max", "std"]),
        "DegreeScalerAggregation": lambda: aggregations.DegreeScalerAggregation(
            ["mean"], ["identity", "linear"], DEGREES
        ),
        "LCMAggregation": lambda: aggregations.LCMAggregation(WIDTH, WIDTH),
        "EquilibriumAggregation": lambda: aggregations.EquilibriumAggregation(WIDTH, WIDTH, [4], 1, 0.1),
        "PatchTransformerAggregation": lambda: aggregations.PatchTransformerAggregation(WIDTH, WIDTH, 3, 4),
    }
    simple = ("Sum", "Mean", "Max", "Min", "Mul", "Var", "Std", "Median", "VariancePreserving")
    made = {f"{name}Aggregation": getattr(aggregations, f"{name}Aggregation") for name in simple} | special
    for name, make in made.items():
        sorts = name.split("Agg")[0] in ("LSTM", "GRU", "Sort", "MLP", "SetTransformer", "LCM", "PatchTransformer")
        if not sorts and not name.startswith(("Set2", "GraphM", "Equi")):
            add_layer("pyg", f"SimpleConv of {name}", lambda make=make: gnn.SimpleConv(make()), plain, "whole, mask")
        if not sorts and not name.startswith("GraphM"):
            add_layer("pyg", f"{name} by targets", make, _by_targets, "whole")
        add_layer("pyg", f"{name} of all", make, by_batch, "whole, no gradient")


def _by_targets(layer, s, x):
    row, col = s.g.edge_index
    return layer(x[row], col, dim_size=s.num_nodes)


for name, (make, call) in POOLS.items():
    add_layer("pyg", name, make, call, "whole, no gradient")
_aggregations()
