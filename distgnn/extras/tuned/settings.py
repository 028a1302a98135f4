"""Published settings of classic models on whole graphs: what `--recipe tuned` races.

Sources: tunedGNN (Luo et al., NeurIPS'24; `medium_graph/run_gnn.sh`), heterophilous-graphs (Platonov et al., ICLR'23),
GCNII (Chen et al., ICML'20), APPNP (Gasteiger et al., ICLR'19). They have one head where nothing else is said.
"""

from collections.abc import Mapping
from typing import Any

from distgnn.config.recipes import has_few_labels

Options = dict[str, Any]


def _setting(model: str, width: int, layers: int, dropout: float, norm: str, **more: Any) -> Options:
    return {"model": model, "hidden_feats": width, "num_layers": layers, "dropout": dropout, "norm": norm} | more


def _tuned(model: str, width: int, layers: int, dropout: float, norm: str, decay: float, **more: Any) -> Options:
    """A setting of tunedGNN: convolutions in blocks, and a linear layer behind them."""
    heads = {"num_heads": 1} if model == "gat" else {}
    usual: Options = {"head": "linear", "lr": 0.001, "weight_decay": decay}
    return _setting(model, width, layers, dropout, norm, **heads | usual | more)


RESIDUAL: Options = {"block": "residual"}
MANY_LABELS: dict[str, Options] = {  # by the graph that it was published for
    "amazon-photo, sage": _tuned("sage", 64, 6, 0.2, "layer", 5e-5, **RESIDUAL),
    "amazon-photo, gat": _tuned("gat", 64, 3, 0.5, "layer", 5e-5, **RESIDUAL),
    "amazon-photo, gcn": _tuned("gcn", 256, 6, 0.5, "layer", 5e-5, **RESIDUAL),
    "amazon-computers, sage": _tuned("sage", 64, 4, 0.3, "layer", 5e-5),
    "amazon-computers, gat": _tuned("gat", 64, 2, 0.5, "layer", 5e-5),
    "amazon-computers, gcn": _tuned("gcn", 512, 3, 0.5, "layer", 5e-5),
    "coauthor-cs, sage": _tuned("sage", 512, 2, 0.5, "layer", 5e-4, **RESIDUAL),
    "coauthor-cs, gcn": _tuned("gcn", 512, 2, 0.3, "layer", 5e-4, **RESIDUAL),
    "coauthor-physics, gcn": _tuned("gcn", 64, 2, 0.3, "layer", 5e-4, **RESIDUAL),
    "wikics, sage": _tuned("sage", 256, 2, 0.7, "layer", 0.0),
    "amazon-ratings, gcn": _tuned("gcn", 512, 4, 0.5, "batch", 0.0, **RESIDUAL),
    "minesweeper, sage": _tuned("sage", 64, 15, 0.2, "batch", 0.0, **RESIDUAL, lr=0.01),
    "tolokers, gat": _setting("gat", 512, 2, 0.2, "layer", num_heads=8, block="preact", lr=3e-5),
}
FEW_LABELS: dict[str, Options] = {
    "cora, gcn2": _setting(
        "gcn2", 64, 64, 0.6, "none", input_dropout=0.6, lr=0.01, weight_decay=5e-4, conv_weight_decay=0.01
    ),
    "cora, appnp": _setting("appnp", 64, 2, 0.5, "none", lr=0.01, weight_decay=5e-3),
    "cora, gcn": _tuned("gcn", 512, 3, 0.7, "none", 5e-4),
    "cora, sage": _tuned("sage", 256, 3, 0.7, "none", 5e-4),
    "cora, gat": _tuned("gat", 512, 3, 0.2, "none", 5e-4, **RESIDUAL),
    "citeseer, gcn": _tuned("gcn", 512, 2, 0.5, "none", 0.01),
    "citeseer, gat": _tuned("gat", 256, 3, 0.5, "none", 0.01, **RESIDUAL),
}


def candidates(graph: Mapping[str, Any], given: set[str], model: str) -> dict[str, Options]:
    """The settings to race for a graph of partition.json, by name, without what is given.

    Args: model: the model, where that is given: of settings for others only the rest is taken, where none is for it.
    """
    table = FEW_LABELS if has_few_labels(graph) else MANY_LABELS
    if "model" in given:
        table = {name: one for name, one in table.items() if one["model"] == model} or table
    feats = {"feat_norm": "row-l2" if graph["sparse_feats"] else "standardize"}
    found: dict[str, Options] = {}
    for name, one in table.items():
        options = {key: value for key, value in (one | feats).items() if key not in given}
        if options not in found.values():
            found[name] = options
    return found
