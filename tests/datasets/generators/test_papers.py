"""`typed:`: graphs in the shape of ogbn-mag."""

import numpy as np

from distgnn.datasets import load_graph
from distgnn.fitting.source import content_of_graph


def test_a_typed_graph_has_the_shape_of_ogbn_mag_and_classes_that_neighbours_tell():
    graph = load_graph("typed:nodes=4000,others=8,reverse=0,noise=3,mixing=0.3")
    assert graph.types == ("author", "field_of_study", "institution", "paper") and sum(graph.type_counts) == 4000
    widths = {kind: columns["feats"].shape[1] for kind, columns in graph.typed.items() if "feats" in columns}
    assert widths == {"author": 8, "field_of_study": 8, "paper": 64}
    assert len(graph.relations) == 4 and 0.75 < graph.num_edges / 40000 <= 1  # doubles are taken out
    both = load_graph("typed:nodes=4000,others=8,noise=3,mixing=0.3")
    assert both.relations[4:] == tuple((target, f"rev_{name}", source) for source, name, target in graph.relations)
    assert both.edges.tolist() == [*graph.edges.tolist(), *graph.edges[:, ::-1].tolist()]
    sources, targets = graph.edges[graph.edge_types == graph.relations.index(("paper", "cites", "paper"))].T
    same = np.mean(graph.labels[sources] == graph.labels[targets])  # 1 - mixing, and a tenth of the others by chance
    assert abs(same - 0.73) < 0.05 and (sources != targets).all()
    seeds = [content_of_graph(load_graph(*one)) for one in (("typed:seed=4",), ("typed:", None, 4), ("typed:seed=5",))]
    assert seeds[0] == seeds[1] != seeds[2]
