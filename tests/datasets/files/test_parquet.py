"""Graphs in Parquet: edges by number or by name, embeddings as features, damage by its file."""

import numpy as np
import pytest
import torch

import distgnn as dg
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import DistGNNError

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
EDGES = pandas.DataFrame({"source": ["ann", "bob", "007"], "target": ["bob", "007", "o'neil, sean"]})


def test_edges_in_parquet(tmp_path):
    EDGES.to_parquet(tmp_path / "e.parquet")
    graph = dg.load_graph(tmp_path / "e.parquet", renumber=True)
    assert graph.node_names[graph.edges].tolist() == EDGES.to_numpy().tolist()
    with pytest.raises(DistGNNError, match=r"e.parquet: edges: ids are texts: --renumber"):
        dg.load_graph(tmp_path / "e.parquet")
    EDGES.assign(source=[0, 1, 2], target=[1, 2, 5]).to_parquet(tmp_path / "e.parquet")
    assert dg.load_graph(tmp_path / "e.parquet").num_nodes == 6


def test_embeddings_are_features_again(tmp_path):
    source = dg.load_graph("communities:nodes=60,classes=4,feats=8")
    source.node_names = np.array([f"v{place}" for place in range(60)])
    model = torch.nn.Linear(8, 3)
    dg.predict(model, source, ranks=1, quiet=True, out=tmp_path / "z.parquet")
    names = source.node_names[source.edges]
    graph = dg.load_graph({"edges": names, "nodes": tmp_path / "z.parquet"}, findings=Findings())
    np.testing.assert_array_equal(graph.feats, dg.predict(model, source, ranks=1, quiet=True))
    np.testing.assert_array_equal(graph.edges, source.edges)


@pytest.mark.parametrize("damage", [lambda whole: b"PAR1 and more", lambda whole: whole.replace(b"sean", b"s\xf6an")])
def test_a_damaged_file_is_named(damage, tmp_path):
    EDGES.to_parquet(tmp_path / "n.parquet", compression=None)
    (tmp_path / "n.parquet").write_bytes(damage((tmp_path / "n.parquet").read_bytes()))
    with pytest.raises(DistGNNError, match=r"n.parquet: damaged"):
        dg.load_graph({"edges": EDGES, "nodes": tmp_path / "n.parquet", "id": "target"})
