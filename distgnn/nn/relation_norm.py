"""1 / c(v, r): each vertex averages over its in-arcs of each relation (R-GCN's normalisation)."""

import torch

from distgnn import ops
from distgnn.nn.protocol import DataGraph

COLUMN = "relation_norm"


def relation_norm(graph: DataGraph) -> torch.Tensor:
    """One over the number of in-arcs of the same relation at the same target, in the whole graph: [A, 1]. Kept.

    Collective: the first time.

    Notes: kept in `graph.edata`; relations are counted one after the other, so it takes a few numbers per arc.

    Source: Schlichtkrull et al., ESWC'18, equation 2.
    """
    if COLUMN not in graph.edata:
        relations = graph.edata["etype"]
        norm = torch.ones(len(relations), 1, dtype=graph.dtype)
        for relation in range(graph.num_relations):
            here = relations == relation
            counts = ops.to_arcs(graph, ops.from_arcs(graph, here[:, None].to(graph.dtype)), "target")
            norm[here] = 1 / counts[here]
        graph.edata[COLUMN] = norm
    return graph.edata[COLUMN]
