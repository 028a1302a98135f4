"""`distgnn models` says what is so: every layer of the table is run, and the rows it writes on arcs are looked at."""

import importlib
import re

import pytest
from against_dgl import Inputs, default_float64, made, num_arc_ids, run_rows
from cut_graphs import random_graph, whole_graph

from distgnn.config import EDGE_MODELS, MODELS, ModelConfig
from distgnn.graph.face.row_graph import with_rows
from distgnn.interop.table import DGL, HOW, LAYERS, OWN, PYG
from distgnn.nn import model_for
from distgnn.ops.edges import on_arcs

MOST_NUMBERS = 3  # per arc: a weight, or a few; rows of vertices are wider
HEADS = 4  # of layers with attention in these cases: as many numbers per arc
DGL_CASES = {  # row of the table -> case of tests/harness/dgl_layers.py, where the name does not say it
    "SAGEConv mean": "sage mean",
    "SAGEConv gcn": "sage gcn",
    "SAGEConv pool": "sage pool",
    "GraphConv": "gcn both",
    "GINConv sum, mean": "gin sum",
    "GINConv max": "gin max",
    "SGConv": "sg",
    "TAGConv": "tag",
    "APPNPConv": "appnp weighted",
    "GCN2Conv": "gcn2",
    "EdgeWeightNorm": "edge weight norm both",
    "JumpingKnowledge": "jumping knowledge",
    "ChebConv": "cheb",
    "GATConv": "gat",
    "GINEConv": "gine",
    "EdgeGATConv": "edge gat",
    "GATv2Conv": "gatv2",
    "DotGatConv": "dot gat",
    "AGNNConv": "agnn",
    "RelGraphConv": "rgcn",
}


@pytest.fixture
def widest(monkeypatch):
    """Widths of rows that were brought to arcs, or from them."""
    found = [0]
    for real in (on_arcs.gathered, on_arcs.summed):

        def noted(graph, rows, *rest, real=real):
            found.append(rows.shape[1])
            return real(graph, rows, *rest)

        monkeypatch.setattr(on_arcs, real.__name__, noted)
    return found


def run(name, cases, widest) -> str:
    """How a case runs, on one rank."""
    data = random_graph(12)
    graph = with_rows(whole_graph(data))
    inputs = Inputs.random(data.num_nodes, num_arc_ids(data.edge_list()))
    make, call = cases[name]
    layer = made(make)
    del widest[1:]
    with default_float64():
        run_rows(graph, layer, inputs, call)
    has_heads = re.search(r"GAT|Transformer|\bgat", name)
    return "arcs" if max(widest) > (HEADS if has_heads else MOST_NUMBERS) else "kernel"


@pytest.mark.parametrize(("library", "table"), [("torch_geometric", PYG), ("dgl", DGL)])
def test_layers_run_as_the_table_says(library, table, widest):
    """Those of graphs with types: tests/graph/face/test_typed_graph.py and test_typed_dgl.py."""
    pytest.importorskip(library)
    known = importlib.import_module("dgl_layers" if table is DGL else "pyg_layers").cases()
    words_of = DGL_CASES if table is DGL else {}
    rows = [layer for layer in table if layer.how not in ("refused", "types")]
    names = {layer.name: words_of.get(layer.name, layer.name) for layer in rows}
    first = {name: next(case for case in known if case.startswith(words)) for name, words in names.items()}
    assert {name: run(case, known, widest) for name, case in first.items()} == {one.name: one.how for one in rows}
    if table is PYG:
        assert {name.split()[0] for name in known} == {name.split()[0] for name in names}


@pytest.mark.parametrize("layer", OWN, ids=lambda layer: layer.name)
def test_our_models_run_as_the_table_says(layer, widest):
    graph = whole_graph(random_graph(5, typed=layer.name in (*EDGE_MODELS, "rgcn")))
    model_for(ModelConfig(layer.name, hidden_feats=8, num_heads=1), graph).double()(graph, graph.feats)
    assert ("arcs" if max(widest) > MOST_NUMBERS else "kernel") == layer.how


def test_the_table_has_every_model_and_nothing_twice():
    assert sorted(layer.name for layer in OWN) == sorted(MODELS)
    assert len({(layer.library, layer.name) for layer in LAYERS}) == len(LAYERS)
    assert {layer.how for layer in LAYERS} == HOW.keys()
