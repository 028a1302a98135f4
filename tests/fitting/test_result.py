"""`FitResult.predict(data)`: on the graph of the training it gives the bits of `predict()`; others must fit."""

import numpy as np
import pytest
import torch

import distgnn as dg
from distgnn.errors import InputError, RunError

pyg = pytest.importorskip("torch_geometric.nn")

SMALL = {"hidden_feats": 8, "epochs": 3, "lr": 0.02}


def own(graph):
    return pyg.GCN(graph.num_feats, 8, 2, graph.num_classes)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("sage", SMALL | {"feat_norm": "standardize"}),
        ("gcn", SMALL | {"partition": dg.CutConfig(normalize_feats="row", direction="both", self_loops="add")}),
        (own, {"epochs": 2}),
    ],
)
def test_the_graph_of_the_training_gives_the_same_bits_and_a_shuffled_one_its_rows(graph, tmp_path, model, options):
    result = dg.fit(graph, model, ranks=1, quiet=True, **options)
    assert torch.equal(result.predict(graph), result.predict())
    order = np.random.default_rng(1).permutation(60)
    place = np.argsort(order)  # vertex order[i] is called i
    other = {"edge_index": place[graph.edges].T, "x": graph.feats[order]}  # without labels
    torch.testing.assert_close(result.predict(other), result.predict()[order])
    kept = result.save(tmp_path / "kept")
    if model is own:
        with pytest.raises(RunError, match=r"module of your own: dg\.load_result"):
            dg.load_result(kept).predict(other)
    else:
        assert torch.equal(dg.load_result(kept).predict(graph), result.predict())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((60, 7), np.float32)}, "this graph has 7 features, and the one of the training 8"),
        ({"edge_type": np.arange(400) % 2}, "this graph has 2 edge types, and the one of the training 0"),
        ({"y": np.arange(60) % 5}, "5 classes, one label of each vertex, and the one of the training 4"),
    ],
)
def test_other_columns_are_refused(arrays, change, message):
    result = dg.fit(arrays, "gcn", ranks=1, quiet=True, **SMALL)
    with pytest.raises(InputError, match=message):
        result.predict(arrays | change)
