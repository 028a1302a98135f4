"""Which layer of which library runs how on a DistGraph: what `distgnn models` and the guide show.

Tests run every row: what is "kernel" or "arcs" beside the same layer in one process, and they look at which rows a
layer writes on arcs; what is "refused" must be refused.
"""

import json
from dataclasses import dataclass
from pathlib import Path

HOW = {
    "kernel": "fast path: sums and attention in our kernels, no row is written per arc",
    "arcs": "local arcs: rows are written on the arcs of each rank, as the library does it for all arcs",
    "types": "on graphs with types: rows of each type, arcs of each relation, and the layers inside as above",
    "refused": "an error that names what to use instead",
}


@dataclass(frozen=True)
class Layer:
    """One layer as its users name it.

    Args: library: "distgnn", "dgl" or "pyg"; name: the class, and which of its options, if they matter; how: a key of
        `HOW`; note: what is particular, or what to use instead.
    """

    library: str
    name: str
    how: str
    note: str = ""


# Library and how its layers run -> their names, with a note where there is one.
ROWS: dict[tuple[str, str], list[str | tuple[str, str]]] = {
    ("distgnn", "kernel"): [
        ("sage", "layers SAGEConv; keeps the aggregation of input features"),
        ("gcn", "GraphConv"),
        ("gin", "GINConv"),
        ("gat", "GATConv; nothing is stored per arc"),
        ("gatv2", "GATv2Conv; a number per arc and head"),
        ("gcn2", "GCN2Conv"),
        ("appnp", "APPNPConv"),
        ("rgcn", "RelGraphConv; sums per relation and target"),
    ],
    ("distgnn", "arcs"): [
        ("gine", "GINEConv: messages are made of edge features"),
        ("edgegat", "EdgeGATConv: edge features are summed per head, not rows of vertices"),
    ],
    ("dgl", "kernel"): [
        *("SAGEConv mean", "SAGEConv gcn", "GraphConv", "GINConv sum, mean", "SGConv", "TAGConv", "APPNPConv"),
        *("GCN2Conv", "EdgeWeightNorm", "JumpingKnowledge"),
        ("SAGEConv pool", "the winner of a maximum is remembered across ranks"),
        "GINConv max",
        ("ChebConv", "pass lambda_max: dgl.laplacian_lambda_max needs the whole graph"),
        *((name, "numbers per arc and head") for name in ("GATConv", "DotGatConv", "AGNNConv")),
    ],
    ("dgl", "arcs"): [
        *("GINEConv", "EdgeGATConv", "GATv2Conv"),
        ("RelGraphConv", "all regularisers; presorted=True with rows of all ranks only"),
    ],
    ("dgl", "types"): [
        ("HeteroGraphConv", "over layers that take (src, dst); sums of SAGEConv and GraphConv share one exchange"),
        ("HGTConv", "on dgl.to_homogeneous(graph, …), as RelGraphConv and TypedLinear; presorted or not"),
        *("HeteroLinear", "HeteroEmbedding"),
        ("edge_softmax", "of a dict: over the arcs of all relations at a vertex"),
    ],
    ("dgl", "refused"): [
        ("SAGEConv lstm", "a vertex's arcs lie on several ranks: there is no sequence to read"),
        ("SumPooling", "and other readouts, with plain_tensors=True: all_sum of the rank's sum; with rows they run"),
    ],
    ("pyg", "kernel"): [
        ("GCNConv", "factors per vertex; the aggregation of input features is kept"),
        ("SAGEConv", "mean, sum, max; the aggregation of input features is kept"),
        *("GraphConv", "GINConv"),
        ("GATConv", "nothing is stored per arc; with dropped attention numbers per arc and head"),
        ("GATv2Conv", "a number per arc and head"),
        ("TransformerConv", "a number per arc and head"),
        *("APPNP", "SGConv", "SSGConv", "TAGConv", "GCN2Conv", "ARMAConv", "LGConv", "MixHopConv"),
        "GatedGraphConv",
        ("ChebConv", "without lambda_max the largest weight of all ranks is taken, in two more sums"),
        ("RGCNConv", "mean and sum: sums per relation and target"),
        *("ClusterGCNConv", "MFConv", "SimpleConv", "FAConv"),
        ("own layer: weight times x_j", "a MessagePassing of yours; also x_j alone, with sum, mean, max or min"),
        *("Sequential", "GraphSAGE", "GCN", "GAT", "GIN"),
    ],
    ("pyg", "arcs"): [
        ("SAGEConv three aggregators", "lists of aggregators with std, var, softmax or powermean"),
        *("GATConv edge features", "GATv2Conv edge features", "TransformerConv edge features", "GINEConv"),
        *("PNAConv", "FastRGCNConv", "LEConv", "AGNNConv", "FeaStConv", "GENConv", "ResGatedGraphConv"),
        *("EdgeConv", "FiLMConv", "NNConv", "CGConv", "EGConv", "GeneralConv", "PNA", "EdgeCNN"),
        ("DirGNNConv", "give it graph.edge_index: it turns the arcs round itself"),
        ("own layer: any other message", "that treats each arc by itself"),
    ],
    ("pyg", "types"): [
        ("HeteroConv", "over layers that take (x_src, x_dst); sums of SAGEConv share one exchange"),
        ("HGTConv", "one softmax and one exchange over all relations; three numbers per arc and head"),
        *("to_hetero", "to_hetero_with_bases", "HANConv"),
        *("HEATConv", "RGATConv", "HeteroLinear", "HeteroBatchNorm", "HeteroLayerNorm"),
    ],
    ("pyg", "refused"): [
        ("SAGEConv lstm", "aggregators that sort or read a sequence: sum, mean, max, min, std, var, softmax run"),
        *("SAGEConv median", "SAGEConv mul"),
        ("global_mean_pool", "and other pools, with plain_tensors=True: all_sum of the rank's sum; with rows they run"),
    ],
}

LAYERS: list[Layer] = [
    Layer(library, *((row[0], how, row[1]) if isinstance(row, tuple) else (row, how)))
    for (library, how), rows in ROWS.items()
    for row in rows
]
OWN, DGL, PYG = ([one for one in LAYERS if one.library == name] for name in ("distgnn", "dgl", "pyg"))


def tried() -> tuple[list[list], list[list[str]]]:
    """What was run beside the plain library on 1, 2 and 3 ranks: `tests/bench/peers/run.py WORK --write` writes it.

    Returns: (kind, equal on 1, 2 and 3 ranks, refused in one line on several, of these equal on one) of each kind; and
        (the line, the scripts and layers) of each refusal.
    """
    found = json.loads(Path(__file__).with_name("tried.json").read_text(encoding="utf-8"))
    return found["kinds"], found["refused"]
